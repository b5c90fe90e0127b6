"""Words of the corpus, real and invented, each for ever in training or held out."""

from __future__ import annotations

import zlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from random import Random

SPLITS = ("train", "held_out")

_VERBS = """
get set find book send open close start stop add remove create delete update list play show
order move check
"""
_REAL = """
account address airport album alarm amount animal answer apple april archive arrow artist author
autumn badge bakery balance banana basket battery beach bicycle bill birthday blanket boat book
border bottle branch bread bridge brother bucket budget building bus butter button cable cake
calendar camera candle canvas captain car card carpet castle cat chair channel cheese cherry
chess cinema circle city class clock cloud coat code coffee color comet company concert contact
copper corner cotton country course cover crystal cup currency customer daisy data date day
desert desk device diamond dinner direction doctor document dog dollar door dragon drawer dream
driver duration eagle east echo email engine event evening exam falcon farm feather festival
field file film flag flight floor flower folder forest format fountain friday friend garden gate
ghost glass gold grape green grocery group guest guitar hall hammer harbor hat hawk heart height
helmet history hotel hour house image index invoice iron island ivory jacket january jazz
journal juice july june jungle kettle key keyboard kitchen kite label ladder lake lamp language
laptop lemon letter level library light limit linen lion location lunch machine magnet mail
manager mango map maple marble march market meadow meeting melody member memory menu message
metal meter middle milk mirror mode model moment monday monkey month moon morning motor mountain
museum music name needle network night north note number ocean october office olive onion orange
orchard order owl owner package page paint palace panel paper parcel park party passenger pasta
path payment peach pencil people pepper person phone photo piano picture pilot pizza place
planet plant plate player pocket poem point port price printer priority product profile project
purple queen query quiet rabbit radio rain range rate recipe record region reminder report
restaurant result rice ring river road robot rocket room rose route saddle salad sale salmon
sand saturday school score screen season seat server shelf ship shirt shop signal silver size
sky sleep snow soap song south spider spoon sport spring square stadium star station status
stone store storm street student subject sugar summer sunday table target task tea teacher team
temperature tennis theater thursday ticket tiger time title token topic tower toy track trade
train travel tree tuesday tunnel turtle type unit user valley value velvet vendor video village
violin voice volume wagon wallet watch water weather wednesday week weight west wheel width wind
window winter wolf wood word yellow zebra zone
amsterdam athens berlin boston cairo chicago denver dublin geneva helsinki jakarta kyoto lagos
lima lisbon london madrid milan mumbai nairobi osaka oslo paris prague quito rome seoul sofia
tokyo turin vienna warsaw zurich
ada alan anna ben carla david dora elena emma erik fatima felix george grace hana henry ines
ivan jack julia karl lena leo lucas maria martin maya mia nadia nina noah olga omar oscar paula
peter rosa ruth sam sara sofie tina tom vera victor yuki zoe
"""
_ONSETS = "b c d f g h j k l m n p r s t v w z ch sh st tr br pl"
_VOWELS = "a e i o u"
_CODAS = "n r s l t"

VERBS, REAL = tuple(_VERBS.split()), tuple(_REAL.split())
_SOUNDS = (tuple(_ONSETS.split()), tuple(_VOWELS.split()), (*("",) * 8, *_CODAS.split()))


def is_held_out(text: str) -> bool:
    """Tell whether a word, a grid or a value is held out of training, by its hash: one in eight is."""
    return zlib.crc32(text.encode()) % 8 == 0


def split_of(word: str) -> str:
    """Return the split of a word for ever."""
    return SPLITS[is_held_out(word)]


def invented(random: Random) -> str:
    """Make a pronounceable word of two or three syllables."""
    count = 2 if random.random() < 0.85 else 3
    onsets, vowels, codas = _SOUNDS
    pick = random.choice
    return "".join(pick(onsets) + pick(vowels) + pick(codas) for _ in range(count))


def word(random: Random, split: str, invented_share: float = 0.5) -> str:
    """Draw a word of a split.

    Args:
        random: the source of chance.
        split: `train` or `held_out`.
        invented_share: how often the word is an invented one.
    """
    while True:
        found = invented(random) if random.random() < invented_share else random.choice(REAL)
        if split_of(found) == split:
            return found


def words(random: Random, split: str, count: int) -> list[str]:
    """Draw `count` different words of a split."""
    found: list[str] = []
    while len(found) < count:
        drawn = word(random, split)
        if drawn not in found:
            found.append(drawn)
    return found

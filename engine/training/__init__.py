"""How the embedded model was made: corpus, tokenizer, optimiser, training loop, evaluation."""

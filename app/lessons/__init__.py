"""The lessons: what they say (`text/`, data), what they show (`scenes`), and what the browser may ask about them."""

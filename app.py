"""Start the page; a Hugging Face Space starts here too."""

from app import main

if __name__ == "__main__":
    main()

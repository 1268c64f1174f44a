"""Data sets as Hugging Face's library ``datasets`` saves them and its Hub has them."""

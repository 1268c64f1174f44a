"""The site: pages of docs/ and pages made from the code, built by Sphinx (``python -m docs.site FOLDER``)."""

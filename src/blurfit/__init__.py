"""blurfit: blur your own record, then fit together."""

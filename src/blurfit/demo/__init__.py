"""Generated people agree, blur, send, and get a model."""

"""What commands print: tables, texts, JSON."""

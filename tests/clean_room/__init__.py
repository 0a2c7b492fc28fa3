"""ktrial on systems that hold nothing: bare Debian, root and an ordinary user, a small /tmp, two cores."""

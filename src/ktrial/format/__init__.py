"""How values are written for people: numbers, labels, and text from outside made safe to print."""

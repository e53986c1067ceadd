"""From the text of a reply to boxes, masks and a status; the target is never seen here."""

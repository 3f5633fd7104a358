"""Who owns what: records that one owner holds, and the question which broker owns a name."""

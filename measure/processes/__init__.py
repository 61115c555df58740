"""Several processes that run one launch: how they join, agree, wait for each other, and are judged by their leader."""

"""Reviews: proposals, comments, votes, and the kernels a team has agreed to use."""

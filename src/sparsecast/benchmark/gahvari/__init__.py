"""The five-minute benchmark of Gahvari, Hoemmen, Demmel and Yelick (2007)."""

"""The mathematics: numpy and scipy only, each function opening with its formula."""

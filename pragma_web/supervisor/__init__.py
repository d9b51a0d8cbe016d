"""One supervisor for all processes on one machine: starts them, starts anew what dies, stops them all."""

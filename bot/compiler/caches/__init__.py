"""What is kept between runs: cells, texts, compilers."""

"""What scripts/compare-llama, scripts/report and scripts/roofline share. Needs Python 3.9 alone."""

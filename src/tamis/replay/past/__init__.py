"""Past events of a log, counted in one process; `tamis.spark.backtest` counts more of them."""

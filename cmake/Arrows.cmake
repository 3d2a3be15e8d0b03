# The house: its rooms, and what each may include. The one place that says so; cmake/CheckArrows.cmake
# enforces it.
set(house base configs ops cache io gemma_like serve tools)
set(sees_base base)
set(sees_configs configs)
set(sees_ops ops)
set(sees_cache cache configs ops base)
set(sees_io io ops base)
set(sees_gemma_like gemma_like configs cache io ops base)
set(sees_serve serve gemma_like configs cache io ops base)
set(sees_tools tools serve gemma_like configs cache io ops base)

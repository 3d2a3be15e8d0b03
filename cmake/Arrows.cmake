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

# A file of a folder layers/ includes no other kind of layer, of its room or another, so that a kind is
# understood, and added, by itself. Excepted are parts that several kinds have in common,
set(layer_parts attention_queries causal_conv expert_mlp experts state_chunks)
# and, as <file>:<kind>, what is made of another kind: the attention that reads another's rows, and has
# its shape; the MLPs whose activations or experts are those of the plain ones.
set(layers_of_layers
    shared_kv_attention:attention attention_queries:attention
    gated_input:gated_mlp moe_mlp:gated_mlp moe_beside_mlp:gated_mlp moe_beside_mlp:moe_mlp
    experts:moe_mlp expert_mlp:gated_mlp expert_mlp:squared_relu_mlp)

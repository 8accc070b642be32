"""Rows of the zoo that take text: encoders, decoders, mixtures of experts, state space models."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import torch

from tests.lib.zoo.architecture import of_transformers, tokens

SMALL: Final = {
    "vocab_size": 96, "hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4,
    "intermediate_size": 64, "max_position_embeddings": 64, "attn_implementation": "sdpa",
}  # fmt: skip
"""Options that most encoders and decoders of transformers have."""
DECODER: Final = {**SMALL, "num_key_value_heads": 2, "use_cache": False}
ENCODER_DECODER: Final = {
    "vocab_size": 96, "d_model": 32, "encoder_layers": 2, "decoder_layers": 2,
    "encoder_attention_heads": 4, "decoder_attention_heads": 4, "encoder_ffn_dim": 64,
    "decoder_ffn_dim": 64, "use_cache": False,
}  # fmt: skip
_ENDS: Final = {"pad_token_id": 0, "bos_token_id": 1, "eos_token_id": 2}
"""Numbers of tokens, which by default lie beyond a small vocabulary."""
_EAGER: Final = {"attn_implementation": "eager"}
_LATENT: Final[Mapping[str, Any]] = {
    **DECODER, "num_key_value_heads": 4, "moe_intermediate_size": 24, "n_routed_experts": 4,
    "n_shared_experts": 1, "num_experts_per_tok": 2, "first_k_dense_replace": 1,
    "kv_lora_rank": 16, "q_lora_rank": 16, "qk_rope_head_dim": 8, "qk_nope_head_dim": 8,
    "v_head_dim": 8, "n_group": 2, "topk_group": 1,
}  # fmt: skip
"""DeepSeek's attention with latent keys and values, and experts in groups."""
_STATES: Final = {
    "vocab_size": 96, "hidden_size": 32, "num_hidden_layers": 2, "use_cache": False,
}  # fmt: skip


def both_sides() -> Mapping[str, torch.Tensor]:
    """Random token numbers for an encoder and for a decoder."""
    return {
        "input_ids": torch.randint(3, 96, (1, 9)),
        "decoder_input_ids": torch.randint(3, 96, (1, 7)),
    }


LANGUAGE: Final = (
    # Encoders of language
    of_transformers("bert", "BertModel", "BertConfig", tokens(), **SMALL),
    of_transformers("distilbert", "DistilBertModel", "DistilBertConfig", tokens(), vocab_size=96,
                 dim=32, n_layers=2, n_heads=4, hidden_dim=64),
    of_transformers("roberta", "RobertaModel", "RobertaConfig", tokens(), **SMALL),
    of_transformers("albert", "AlbertModel", "AlbertConfig", tokens(), **SMALL, embedding_size=16),
    of_transformers("electra", "ElectraModel", "ElectraConfig", tokens(), **SMALL,
                    embedding_size=16),
    of_transformers("mpnet", "MPNetModel", "MPNetConfig", tokens(), **{**SMALL, **_EAGER}),
    of_transformers("deberta-v2", "DebertaV2Model", "DebertaV2Config", tokens(),
                    **{**SMALL, **_EAGER}, relative_attention=True, position_buckets=16,
                    pos_att_type=["p2c", "c2p"]),
    of_transformers("fnet", "FNetModel", "FNetConfig", tokens(), vocab_size=96, hidden_size=32,
                    num_hidden_layers=2, intermediate_size=64, max_position_embeddings=64),
    of_transformers("modernbert", "ModernBertModel", "ModernBertConfig", tokens(), **SMALL,
                    pad_token_id=0, bos_token_id=1, eos_token_id=2, cls_token_id=1,
                    sep_token_id=2),
    of_transformers("convbert", "ConvBertModel", "ConvBertConfig", tokens(),
                    **{**SMALL, **_EAGER}, embedding_size=16),
    # Decoders of language
    of_transformers("gpt2", "GPT2LMHeadModel", "GPT2Config", tokens(), vocab_size=96, n_embd=32,
                 n_layer=2, n_head=4, n_positions=64, use_cache=False),
    of_transformers("gpt-neo", "GPTNeoForCausalLM", "GPTNeoConfig", tokens(), vocab_size=96,
                 hidden_size=32, num_layers=2, num_heads=4, max_position_embeddings=64,
                 use_cache=False, attention_types=[[["global", "local"], 1]]),
    of_transformers("opt", "OPTForCausalLM", "OPTConfig", tokens(), vocab_size=96, hidden_size=32,
                 num_hidden_layers=2, num_attention_heads=4, ffn_dim=64, word_embed_proj_dim=32,
                 max_position_embeddings=64, use_cache=False),
    of_transformers("llama", "LlamaForCausalLM", "LlamaConfig", tokens(), **DECODER),
    of_transformers("mistral", "MistralForCausalLM", "MistralConfig", tokens(), **DECODER),
    of_transformers("qwen2", "Qwen2ForCausalLM", "Qwen2Config", tokens(), **DECODER),
    of_transformers("gemma", "GemmaForCausalLM", "GemmaConfig", tokens(), **DECODER, head_dim=8),
    of_transformers("phi", "PhiForCausalLM", "PhiConfig", tokens(), **DECODER),
    of_transformers("bloom", "BloomForCausalLM", "BloomConfig", tokens(), vocab_size=96,
                    hidden_size=32, n_layer=2, n_head=4, use_cache=False),
    of_transformers("falcon", "FalconForCausalLM", "FalconConfig", tokens(), vocab_size=96,
                    hidden_size=32, num_hidden_layers=2, num_attention_heads=4, use_cache=False),
    of_transformers("gptj", "GPTJForCausalLM", "GPTJConfig", tokens(), vocab_size=96, n_embd=32,
                    n_layer=2, n_head=4, n_positions=64, rotary_dim=4, use_cache=False),
    of_transformers("gpt-neox", "GPTNeoXForCausalLM", "GPTNeoXConfig", tokens(), **SMALL,
                    use_cache=False),
    of_transformers("mpt", "MptForCausalLM", "MptConfig", tokens(), vocab_size=96, d_model=32,
                    n_layers=2, n_heads=4, max_seq_len=64, use_cache=False),
    of_transformers("gemma2", "Gemma2ForCausalLM", "Gemma2Config", tokens(),
                    **{**DECODER, **_EAGER}, head_dim=8, sliding_window=8),
    of_transformers("gemma3", "Gemma3ForCausalLM", "Gemma3TextConfig", tokens(), **DECODER,
                    head_dim=8, sliding_window=8),
    of_transformers("cohere", "CohereForCausalLM", "CohereConfig", tokens(), **DECODER),
    of_transformers("phi3", "Phi3ForCausalLM", "Phi3Config", tokens(), **DECODER, **_ENDS),
    of_transformers("olmo2", "Olmo2ForCausalLM", "Olmo2Config", tokens(), **DECODER, **_ENDS),
    of_transformers("granite", "GraniteForCausalLM", "GraniteConfig", tokens(), **DECODER,
                    **_ENDS),
    of_transformers("starcoder2", "Starcoder2ForCausalLM", "Starcoder2Config", tokens(),
                    **DECODER, **_ENDS),
    of_transformers("diffllama", "DiffLlamaForCausalLM", "DiffLlamaConfig", tokens(),
                    **{**DECODER, **_EAGER}, **_ENDS),
    of_transformers("xlnet", "XLNetModel", "XLNetConfig", tokens(), vocab_size=96, d_model=32,
                    n_layer=2, n_head=4, d_inner=64),
    # Mixtures of experts
    of_transformers("mixtral", "MixtralForCausalLM", "MixtralConfig", tokens(), **DECODER,
                 num_local_experts=4),
    of_transformers("qwen2-moe", "Qwen2MoeForCausalLM", "Qwen2MoeConfig", tokens(), **DECODER,
                    moe_intermediate_size=24, shared_expert_intermediate_size=32, num_experts=4,
                    num_experts_per_tok=2),
    of_transformers("olmoe", "OlmoeForCausalLM", "OlmoeConfig", tokens(), **DECODER,
                    num_experts=4, num_experts_per_tok=2),
    of_transformers("deepseek-v2", "DeepseekV2ForCausalLM", "DeepseekV2Config", tokens(),
                    **_LATENT),
    of_transformers("deepseek-v3", "DeepseekV3ForCausalLM", "DeepseekV3Config", tokens(),
                    **_LATENT),
    of_transformers("gpt-oss", "GptOssForCausalLM", "GptOssConfig", tokens(),
                    **{**DECODER, **_EAGER}, num_local_experts=4, num_experts_per_tok=2,
                    head_dim=8),
    of_transformers("qwen3-moe", "Qwen3MoeForCausalLM", "Qwen3MoeConfig", tokens(), **DECODER,
                    head_dim=8, moe_intermediate_size=24, num_experts=4, num_experts_per_tok=2,
                    decoder_sparse_step=1),
    # State space models, and other recurrences
    of_transformers("mamba", "MambaForCausalLM", "MambaConfig", tokens(), **_STATES,
                    state_size=4),
    of_transformers("mamba2", "Mamba2ForCausalLM", "Mamba2Config", tokens(), **_STATES,
                    state_size=8, num_heads=8, head_dim=8, n_groups=2, chunk_size=8),
    of_transformers("rwkv", "RwkvForCausalLM", "RwkvConfig", tokens(), **_STATES,
                    attention_hidden_size=32, intermediate_size=64, context_length=32),
    of_transformers("recurrent-gemma", "RecurrentGemmaForCausalLM", "RecurrentGemmaConfig",
                    tokens(), vocab_size=96, hidden_size=32, num_hidden_layers=3,
                    num_attention_heads=4, num_key_value_heads=1, intermediate_size=64,
                    lru_width=32, head_dim=8, attention_window_size=8, use_cache=False),
    of_transformers("jamba", "JambaForCausalLM", "JambaConfig", tokens(),
                    **{**DECODER, "num_hidden_layers": 4}, attn_layer_period=2,
                    attn_layer_offset=1, expert_layer_period=2, expert_layer_offset=1,
                    num_experts=4, num_experts_per_tok=2, mamba_d_state=4, mamba_dt_rank=4),
    of_transformers("xlstm", "xLSTMForCausalLM", "xLSTMConfig", tokens(), vocab_size=96,
                    hidden_size=32, num_hidden_layers=2, num_heads=4, chunk_size=16,
                    use_cache=False),
    # Mixtures, convolutions and linear attention beside attention of windows
    of_transformers("afmoe", "AfmoeForCausalLM", "AfmoeConfig", tokens(), **DECODER, head_dim=8,
                    moe_intermediate_size=32, num_experts=4, num_experts_per_tok=2,
                    sliding_window=8, layer_types=["sliding_attention", "full_attention"]),
    of_transformers("minimax", "MiniMaxForCausalLM", "MiniMaxConfig", tokens(), **DECODER,
                    num_local_experts=4, layer_types=["full_attention", "linear_attention"],
                    **_ENDS),
    of_transformers("zaya", "ZayaForCausalLM", "ZayaConfig", tokens(), vocab_size=96,
                    hidden_size=32, num_hidden_layers=2, num_attention_heads=4, head_dim=8,
                    moe_intermediate_size=32, num_experts=4, router_hidden_size=32,
                    layer_types=["hybrid", "hybrid"], max_position_embeddings=64,
                    use_cache=False, **_ENDS),
    of_transformers("lfm3", "Lfm3ForCausalLM", "Lfm3Config", tokens(),
                    **{**DECODER, "num_hidden_layers": 3}, head_dim=8, sliding_window=8,
                    layer_types=["conv", "full_attention", "sliding_attention"], **_ENDS),
    # Both
    of_transformers("t5", "T5Model", "T5Config", both_sides, vocab_size=96, d_model=32, d_kv=8,
                 d_ff=64, num_layers=2, num_heads=4, use_cache=False),
    of_transformers("bart", "BartModel", "BartConfig", both_sides, **ENCODER_DECODER),
    of_transformers("marian", "MarianModel", "MarianConfig", both_sides, **ENCODER_DECODER,
                    pad_token_id=1, decoder_start_token_id=1),
)  # fmt: skip
"""Models of text, with tokens of 96 words."""

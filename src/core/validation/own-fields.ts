/** Fields that the gateway sets or reads itself; no allow list may pass the client's value on. */
export const ownFields: ReadonlySet<string> = new Set(
  `model messages stream stream_options n max_tokens max_completion_tokens max_output_tokens temperature top_p
  presence_penalty frequency_penalty seed random_seed logit_bias logprobs top_logprobs stop tools tool_choice
  parallel_tool_calls functions function_call response_format reasoning_effort user metadata __proto__`.split(/\s+/),
)

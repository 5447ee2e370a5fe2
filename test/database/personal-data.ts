/**
 * Decides for every column of every table whether it holds personal data, and what the deletion of an account does with it.
 * A new column without a line here fails `personal-data.test.ts`.
 */
type Decision = {
  /**
   * `deleted`: the rows end. `kept`: they stay under IDs, without names. `shared`: no row belongs to an account, or
   * names more than a request.
   */
  readonly fate: 'deleted' | 'kept' | 'shared'
  /** Columns with text that people chose or that names them. In a kept row it is erased. */
  readonly personal: readonly string[]
  /** IDs, numbers, times, digests and names of the gateway itself. */
  readonly plain: readonly string[]
}

const columns = (text: string) => text.split(/\s+/).filter(name => name !== '')
const decision =
  (fate: Decision['fate']) =>
  (personal: string, plain: string): Decision => ({ fate, personal: columns(personal), plain: columns(plain) })
const [deleted, kept, shared] = [decision('deleted'), decision('kept'), decision('shared')]

const sums = `requests completed failed input_tokens cached_input_tokens output_tokens reasoning_tokens billed_microcents
  own_key_microcents routing_saved_microcents cache_saved_microcents latency first_token`

export const decisions: Readonly<Record<string, Decision>> = {
  // The customer ID is the operator's link to invoices at Stripe.
  accounts: kept(
    'name rules constraints',
    `id plan requests_per_minute concurrent_requests daily_tokens daily_cost_microcents version cycle_started_at
    cycle_ends_at plan_after_cycle grace_ends_at unpaid_since soft_cap_microcents web fallback continue hedge baseline_model shadow
    balance_microcents
    balance_at requires_totp stripe_customer_id is_operator deleted_at created_at updated_at`,
  ),
  users: kept(
    'email password_hash',
    'id account_id role created_at password_sign_in_until unverified_since email_proven removed_at',
  ),
  api_keys: kept(
    'name tags',
    `id account_id user_id public_id digest created_at updated_at last_used_at revoked_at expires_at line_id web limits
    models strategy fallback continue hedge constraints project_id shortfall_day shortfall_microcents shortfall_request_id
    shortfall_request_microcents`,
  ),
  projects: kept('name', 'id account_id constraints created_at archived_at'),
  provider_keys: deleted('name', 'id account_id project_id provider secret hint fallback created_at updated_at'),
  shadow_comparisons: deleted(
    '',
    `request_id account_id at query_type level model effort baseline_model judge_model verdict microcents served_microcents
    baseline_microcents`,
  ),
  model_switches: shared('', 'model enabled hosts updated_at'),
  project_members: deleted('', 'project_id user_id account_id role created_at'),
  tag_limits: deleted('name value', 'account_id limits created_at'),
  sessions: deleted(
    'user_agent name',
    'id account_id user_id created_at last_used_at expires_at ends_at scopes key_digest',
  ),
  session_tokens: deleted('', 'digest session_id created_at used_at'),
  sign_in_failures: deleted('', 'subject failed_at locks locked_until updated_at'),
  known_addresses: deleted('', 'user_id digest last_used_at failures'),
  email_verifications: deleted('email', 'digest user_id created_at expires_at'),
  invitations: deleted(
    'email',
    'id account_id role project_id project_role invited_by digest created_at expires_at accepted_at',
  ),
  password_resets: deleted('email', 'digest user_id created_at expires_at used_at'),
  user_identities: deleted('issuer subject', 'user_id created_at last_used_at'),
  oidc_sign_ins: deleted('', 'digest user_id created_at expires_at'),
  totp_secrets: deleted('secret', 'user_id confirmed_at last_step created_at'),
  totp_recovery_codes: deleted('', 'user_id digest'),
  // After the last invoice.
  payment_methods: deleted('brand last_four', 'id account_id kind stripe_payment_method_id created_at removed_at'),
  plan_changes: kept('', 'account_id version from_plan to_plan user_id requested_at effective_at'),
  billing_cycles: kept('', 'id account_id starts_at ends_at closed_at'),
  invoices: kept(
    '',
    'id account_id cycle_id status total_microcents total_cents issued_at paid_at stripe_invoice_id updated_at',
  ),
  invoice_lines: kept(
    '',
    'invoice_id model requests input_tokens cached_input_tokens output_tokens reasoning_tokens amount_microcents',
  ),
  webhook_events: kept('', 'id type object_id account_id occurred_at received_at'),
  idempotency_keys: deleted('', 'account_id name request_digest status result_id usage lease_ends_at created_at'),
  usage_records: kept(
    'metadata tags',
    `request_id at account_id key_id provider model requested_model upstream_id upstream_hash routing_mode strategy query_type
    streamed dialect status error_code finish_reason input_tokens cached_input_tokens cache_write_tokens output_tokens
    reasoning_tokens estimated billed_microcents reserved_microcents shortfall_microcents search_microcents
    fetch_microcents hedge_microcents own_key_microcents unpriced routing_saved_microcents
    cache_saved_microcents attempts tried latency_ms first_token_ms trace truth
    learning_epoch quality influenced choice_probability enhanced rating is_helpful rated_quality rated_at`,
  ),
  rejected_requests: deleted(
    'category',
    `request_id at account_id key_id requested_model dialect strategy streamed error_code param layer latency_ms`,
  ),
  usage_replaced: kept('row', 'request_id account_id at replaced_at'),
  usage_near_midnight: shared('', 'request_id at'),
  usage_daily: kept('', `account_id day key_id model ${sums}`),
  usage_tags_daily: deleted('tag', `account_id day key_id model ${sums}`),
  email_notices: deleted('body', 'account_id kind subject user_id status due_at attempts created_at'),
  learning_accounts: kept('', 'account_id epoch erased_at swept_epoch updated_at'),
  learning_state: deleted(
    '',
    `account_id query_type model requests entries since at weight quality spread slump slump_weight slump_quality
    latency_ms first_token_ms cost_microcents ratio ratio_variance ratings rating automatic influenced enhanced
    enhanced_quality plain_quality`,
  ),
  // A target is an ID, or names a tag.
  audit_log: kept('address details target', 'id account_id at actor user_id action'),
  webhook_endpoints: deleted(
    'url secret previous_secret',
    `id account_id events format previous_until disabled_at disabled_by failing_since created_at project_id`,
  ),
  webhook_deliveries: deleted(
    'body error',
    `id account_id endpoint_id type event_key status attempts due_at created_at attempted_at response_status duration_ms`,
  ),
  alert_rules: deleted(
    '',
    `id account_id metric threshold window_minutes budget span firing value changed_at due_at since created_at project_id`,
  ),
}

/**
 * Decides for every table with personal data what the anonymization of one user does: `user` = text that names or was written
 * by the user is erased. `account` = it belongs to the account, which stays.
 */
export const ofUser: Readonly<Record<string, 'user' | 'account'>> = {
  accounts: 'user',
  users: 'user',
  api_keys: 'user',
  projects: 'user',
  provider_keys: 'account',
  tag_limits: 'account',
  sessions: 'user',
  email_verifications: 'user',
  invitations: 'user',
  password_resets: 'user',
  user_identities: 'user',
  totp_secrets: 'user',
  payment_methods: 'account',
  usage_records: 'user',
  rejected_requests: 'user',
  usage_replaced: 'user',
  usage_tags_daily: 'user',
  audit_log: 'user',
  webhook_endpoints: 'account',
  email_notices: 'account',
  webhook_deliveries: 'user',
}

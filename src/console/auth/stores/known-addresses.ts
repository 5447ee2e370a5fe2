/**
 * Network addresses that a user has signed in from. A lockout does not apply to them, so no other client can lock a
 * user out there. Guessing is bounded by a separate count: an address with 100 failures since its last sign-in is
 * forgotten.
 */
import type { TransactionSql } from 'postgres'
import type { Database } from '../../../database/database.ts'

const maximumAddresses = 10
const rememberedDays = 90
const maximumFailures = 100

/**
 * Returns whether a sign-in is locked, and whether the user of the email address has signed in under one of the
 * digests.
 */
export async function signInQuotaStatus(
  database: Database,
  email: string,
  { subjects, digests }: { readonly subjects: readonly string[]; readonly digests: readonly string[] },
): Promise<{ readonly isLocked: boolean; readonly isKnown: boolean }> {
  const [row] = await database.run(
    ({ sql }) => sql<{ isLocked: boolean; isKnown: boolean }[]>`
      select
        exists (select from sign_in_failures
          where subject in (select json_array_elements_text(${JSON.stringify(subjects)}::text::json))
            and locked_until > clock_timestamp()) as "isLocked",
        exists (select from known_addresses join users on users.id = user_id
          where email = ${email} and digest in (select json_array_elements_text(${JSON.stringify(digests)}::text::json))
            and last_used_at > clock_timestamp() - make_interval(days => ${rememberedDays})) as "isKnown"`,
  )
  return row ?? { isLocked: true, isKnown: false }
}

/** Returns true if a user has signed in under one of the digests in the last 90 days. */
export async function isKnownTo(step: TransactionSql, userId: string, digests: readonly string[]): Promise<boolean> {
  const rows = await step`
    select 1 from known_addresses
    where user_id = ${userId} and digest in (select json_array_elements_text(${JSON.stringify(digests)}::text::json))
      and last_used_at > clock_timestamp() - make_interval(days => ${rememberedDays})`
  return rows.length > 0
}

/**
 * Counts a failed sign-in from a known address. The hundredth since the last successful one makes the address unknown.
 */
export async function countKnownFailure(database: Database, email: string, digests: readonly string[]): Promise<void> {
  await database.run(
    ({ sql }) => sql`
      with of_user as (
        select user_id, digest from known_addresses join users on users.id = user_id
        where email = ${email} and digest in (select json_array_elements_text(${JSON.stringify(digests)}::text::json))
        for update of known_addresses),
      forgotten as (
        delete from known_addresses using of_user
        where known_addresses.user_id = of_user.user_id and known_addresses.digest = of_user.digest
          and failures + 1 >= ${maximumFailures}::int)
      update known_addresses set failures = failures + 1 from of_user
      where known_addresses.user_id = of_user.user_id and known_addresses.digest = of_user.digest
        and failures + 1 < ${maximumFailures}::int`,
  )
}

/**
 * Stores the address of a successful sign-in under the first digest and deletes the other digests; keeps the ten
 * newest.
 */
export async function rememberAddress(step: TransactionSql, userId: string, digests: readonly string[]): Promise<void> {
  const [digest, ...earlier] = digests
  if (digest === undefined) return
  await step`
    with remembered as (
      insert into known_addresses (user_id, digest, last_used_at) values (${userId}, ${digest}, clock_timestamp())
      on conflict (user_id, digest) do update set last_used_at = clock_timestamp(), failures = 0)
    delete from known_addresses where user_id = ${userId} and digest <> ${digest}
      and (digest in (select json_array_elements_text(${JSON.stringify(earlier)}::text::json))
        or digest in (
          select digest from known_addresses where user_id = ${userId} and digest <> ${digest}
          order by last_used_at desc, digest offset ${maximumAddresses - 1}))`
}

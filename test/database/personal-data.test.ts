/** Deletion of an account and anonymization of a user leave no personal data in any table or in Redis. */
import { afterAll, beforeAll, describe, expect, setDefaultTimeout, test } from 'bun:test'
import { getTableColumns, is } from 'drizzle-orm'
import { getTableConfig, PgTable } from 'drizzle-orm/pg-core'
import * as otherTables from '../../drizzle/tables.ts'
import { anonymizeUser, deleteAccount, eraseLate } from '../../src/console/account/store.ts'
import { releaseUnverified } from '../../src/console/auth/stores/email-links.ts'
import { mailSubject } from '../../src/console/auth/stores/sessions.ts'
import * as tables from '../../src/database/tables.ts'
import { purgeEntries } from '../../src/learning/learning.ts'
import { audit } from '../../src/ledger/reconcile.ts'
import { eventually } from '../harness/eventually.ts'
import { type Gateway, startGateway, withoutTimer } from '../harness/gateway.ts'
import { type PrivateRedis, startRedis } from '../harness/redis.ts'
import { addMember, createKeyFor, owner, type Person, sendRequest, upgraded } from '../harness/users.ts'
import { tampered } from './ledger-rows.ts'
import { decisions, ofUser } from './personal-data.ts'

setDefaultTimeout(240_000)

let gateway: Gateway
let redis: PrivateRedis | null
beforeAll(async () => {
  redis = await startRedis()
  gateway = await startGateway(
    { TRUSTED_PROXIES: '127.0.0.1', ...(redis === null ? {} : { REDIS_URL: redis.url }) },
    withoutTimer,
  )
})
afterAll(async () => {
  await gateway.stop()
  await redis?.stop()
})

test('personal data: has a decision for each column of each table', () => {
  const found = Object.values({ ...tables, ...otherTables })
    .filter(value => is(value, PgTable))
    .map(table => [
      getTableConfig(table).name,
      Object.values(getTableColumns(table))
        .map(column => column.name)
        .sort(),
    ])
  const decided = Object.entries(decisions).map(([name, { personal, plain }]) => [name, [...personal, ...plain].sort()])
  expect(decided.sort()).toEqual(found.sort())
  const withPersonal = Object.keys(decisions).filter(name => (decisions[name]?.personal.length ?? 0) > 0)
  expect(Object.keys(ofUser).sort()).toEqual(withPersonal.sort())
})

const run = <T>(work: Parameters<typeof gateway.deps.database.run<T>>[0]) => gateway.deps.database.run(work)

/** Condition for the rows of an account, `$1`, in a table. */
function ownRows(table: string): string {
  if (table === 'accounts') return 'id = $1'
  if (table === 'sign_in_failures') return `$1::text is not null and subject = '${mailSubject(victim.email)}'`
  if (table === 'session_tokens') return 'session_id in (select id from sessions where account_id = $1)'
  if (table === 'invoice_lines') return 'invoice_id in (select id from invoices where account_id = $1)'
  const { personal = [], plain = [] } = decisions[table] ?? {}
  if ([...personal, ...plain].includes('account_id')) return 'account_id = $1'
  return 'user_id in (select id from users where account_id = $1)'
}

const getRows = (table: string, accountId: string) =>
  run(({ sql }) => sql.unsafe<Record<string, unknown>[]>(`select * from ${table} where ${ownRows(table)}`, [accountId]))

/** Every row of every table, and every key of Redis, as text. */
async function everything(): Promise<string> {
  const dumps = await Promise.all(
    Object.keys(decisions).map(async name => {
      const rows = await run(({ sql }) => sql.unsafe<{ row: string }[]>(`select t::text as row from ${name} t`))
      return rows.map(({ row }) => `${name} ${row}`)
    }),
  )
  const keys = redis === null ? [] : ((await redis.command('keys', '*')) as string[])
  const values = await Promise.all(keys.map(async key => `${key} ${await redis?.command('dump', key)}`))
  return [...dumps.flat(), ...values].join('\n')
}
const linesWith = async (text: string) => (await everything()).split('\n').filter(line => line.includes(text))

const canary = 'canary7k3'
let victim: Person

/** Inserts rows that no short run of the gateway leaves behind. */
async function insertRest({ accountId, id }: Person, keyId: string) {
  await run(async ({ sql }) => {
    await sql`insert into email_verifications values ('d1', ${id}, 'x', now(), now())`
    await sql`insert into password_resets values ('d2', ${id}, 'x', now(), now(), null)`
    await sql`insert into user_identities values ('https://issuer.example', 's', ${id}, now(), now())`
    await sql`insert into oidc_sign_ins values ('d3', ${id}, now(), now())`
    await sql`insert into totp_secrets (user_id, secret, created_at) values (${id}, 'x', now())`
    await sql`insert into totp_recovery_codes values (${id}, 'd4')`
    await sql`insert into invitations (id, account_id, email, role, invited_by, digest, created_at, expires_at)
      values ('inv_1', ${accountId}, 'x', 'member', ${id}, 'd5', now(), now() + interval '1 day')`
    await sql`insert into shadow_comparisons values ('req_s', ${accountId}, now(), null, 'light', 'a/b', null, 'c/d', 'e/f', 'tie', 1, 1)`
    await sql`insert into webhook_events values ('evt_1', 'x', 'obj', ${accountId}, now(), now())`
    await sql`insert into provider_keys (id, account_id, provider, name, secret, hint, created_at)
      values ('pvk_1', ${accountId}, 'openai', 'x', 'x', '', now())`
    await sql`insert into email_notices (account_id, kind, subject, user_id, due_at, created_at)
      values (${accountId}, 'grace_began', 'x', ${id}, now(), now())`
    await sql`insert into usage_replaced values ('req_1', ${accountId}, now(), now(),
      ${JSON.stringify({ key_id: keyId, billed_microcents: 5, metadata: {}, tags: null })}::text::jsonb)`
    await sql`insert into billing_cycles values ('cyc_old', ${accountId}, now() - interval '60 days', now() - interval '30 days', now())`
    await sql`insert into invoices (id, account_id, cycle_id, status, total_microcents, total_cents, issued_at, paid_at)
      values ('inv_old', ${accountId}, 'cyc_old', 'paid', 0, 0, now(), now())`
    await sql`insert into invoice_lines values ('inv_old', 'openai/gpt-4.1', 1, 1, 1, 1, 1, 0)`
  })
}

/** Puts the canary into each column that the decisions call personal, in the account's rows. */
async function plant(accountId: string) {
  const types = await run(
    ({ sql }) => sql<{ table: string; name: string; type: string }[]>`
      select table_name as table, column_name as name, data_type as type from information_schema.columns
      where table_schema = 'public'`,
  )
  await tampered(gateway.deps.database, async sql => {
    for (const [table, { personal }] of Object.entries(decisions))
      for (const column of personal) {
        // Only names of tags are erased, and the limit of a tag has left one.
        if (column === 'target') continue
        const type = types.find(item => item.table === table && item.name === column)?.type
        const quoted = `"${column}"`
        const text =
          table === 'usage_replaced'
            ? `jsonb_set(${quoted}, '{metadata}', '{"who": "${canary}"}')`
            : type === 'jsonb'
              ? `'{"name": "${canary}"}'`
              : type === 'ARRAY'
                ? `'{tag:who=${canary}}'`
                : // Unique in some tables.
                  `'${canary}' || md5(ctid::text)`
        await sql.unsafe(`update ${table} set ${quoted} = ${text} where ${ownRows(table)}`, [accountId])
      }
  })
}

const send = (person: Pick<Person, 'token'>, method: string, path: string, body?: unknown) =>
  sendRequest<{ id: string; error: { code: string; param: string | null } }>(gateway, method, `/api/v1${path}`, {
    token: person.token,
    body,
  })

/** An account with rows in every table that can have some of it. */
async function livedIn(): Promise<{ readonly keyId: string; readonly key: string; readonly member: Person }> {
  victim = await owner(gateway)
  await upgraded(gateway, victim)
  const member = await addMember(gateway, victim, 'member')
  const project = (await send(victim, 'POST', '/projects', { name: canary })).body.id
  await send(victim, 'PUT', `/projects/${project}/members/${member.id}`, { role: 'viewer' })
  await send(victim, 'PUT', '/tags', { name: 'who', value: canary, limits: { daily_tokens: 1_000_000 } })
  await send(victim, 'POST', '/webhooks', { url: `https://${canary}.example/` })
  await send(victim, 'POST', '/alerts', { metric: 'spend', threshold: 5 })
  await send(victim, 'PATCH', '/account', { name: `Account ${canary}` })
  const { id: keyId, key } = await createKeyFor(gateway, victim, `key ${canary}`)
  await sendRequest(gateway, 'POST', '/api/v1/auth/login', { body: { email: victim.email, password: 'a wrong one' } })
  const chat = (body: object, name: string) =>
    sendRequest(gateway, 'POST', '/api/v1/chat', {
      token: key,
      body,
      headers: { 'x-gateway-tags': `who=${canary}`, 'idempotency-key': `once-${name}-${keyId}` },
    })
  expect((await chat({ prompt: 'hi', metadata: { note: `about ${canary}` } }, 'good')).status).toBe(200)
  expect((await chat({ prompt: 'hi', temperature: 'x' }, 'bad')).status).toBe(400)
  await gateway.deps.rejections.flush()
  await insertRest(victim, keyId)
  for (const table of ['usage_records', 'usage_tags_daily', 'learning_state'])
    await eventually(async () => (await getRows(table, victim.accountId)).length > 0, 15_000)
  await plant(victim.accountId)
  return { keyId, key, member }
}

describe('deletion of an account', () => {
  test('leaves no personal data in tables and Redis, and keeps content-free usage and invoices', async () => {
    const { key, member } = await livedIn()
    const { accountId, token } = victim
    // Each place held what must end: otherwise the search below would prove nothing.
    for (const [table, { fate, personal }] of Object.entries(decisions)) {
      if (fate === 'shared') continue
      const rows = await getRows(table, accountId)
      expect([table, rows.length > 0]).toEqual([table, true])
      for (const column of personal)
        expect([table, column, rows.some(row => JSON.stringify(row[column]).includes(canary))]).toEqual([
          table,
          column,
          true,
        ])
    }
    const usage = () =>
      run(
        ({ sql }) => sql`
          select request_id, key_id, provider, model, input_tokens, output_tokens, billed_microcents, trace
          from usage_records where account_id = ${accountId} order by request_id`,
      )
    const before = await usage()

    const [{ name } = { name: '' }] = await run(
      ({ sql }) => sql<{ name: string }[]>`select name from accounts where id = ${accountId}`,
    )
    // The canary took the place of both.
    const hash = await gateway.deps.passwords.hash(victim.password, null)
    await run(
      ({ sql }) => sql`update users set password_hash = ${hash}, email = ${victim.email} where id = ${victim.id}`,
    )
    const remove = (body: object, who = victim) => send(who, 'DELETE', '/account', body)
    const { password } = victim
    expect((await remove({ name: 'other', password })).body.error.param).toBe('name')
    expect((await remove({ name })).body.error.param).toBe('password')
    expect((await remove({ name, password: 'a wrong one' })).status).toBe(401)
    expect((await remove({ name, password: member.password }, member)).status).toBe(403)
    expect((await remove({ name, password })).status).toBe(204)

    expect((await sendRequest(gateway, 'GET', '/api/v1/account', { token })).status).toBe(401)
    await eventually(
      // Not a chat: it would be one more request until the key has ended.
      async () =>
        (await sendRequest(gateway, 'POST', '/api/v1/route', { token: key, body: { prompt: 'hi' } })).status === 401,
      10_000,
    )
    // What the workers do next: the last invoice, then the payment method; the entries of learning.
    await run(({ sql }) => sql`update accounts set deleted_at = deleted_at - interval '1 hour' where id = ${accountId}`)
    await gateway.deps.billingWorker.run()
    const isLearned = (row: Record<string, unknown>) => row.learning_epoch !== null || row.quality !== null
    expect((await getRows('usage_records', accountId)).some(isLearned)).toBe(true)
    await purgeEntries(gateway.deps.database, accountId, () => true)
    expect((await getRows('usage_records', accountId)).some(isLearned)).toBe(false)
    expect(await linesWith(canary)).toEqual([])
    expect(await linesWith(victim.email)).toEqual([])
    expect(await linesWith(member.email)).toEqual([])
    for (const [table, { fate }] of Object.entries(decisions))
      if (fate !== 'shared')
        expect([table, (await getRows(table, accountId)).length > 0]).toEqual([table, fate === 'kept'])
    expect(await usage()).toEqual(before)
    const invoices = await run(
      ({ sql }) => sql<{ total: string; status: string }[]>`
        select total_microcents as total, status from invoices where account_id = ${accountId} and id <> 'inv_old'`,
    )
    const billed = before.reduce((sum, row) => sum + Number(row.billed_microcents), 0)
    expect(invoices.map(({ total, status }) => [Number(total), status])).toEqual([[billed, 'paid']])
    const scope = { from: '2020-01-01', to: '2100-01-01', accountId }
    expect((await audit(gateway.deps.database, [], scope)).differences).toEqual([])
    const entries = await run(
      ({ sql }) => sql`
        select actor, user_id, address, details from audit_log where account_id = ${accountId} and action = 'account.deleted'`,
    )
    expect([...entries]).toEqual([{ actor: 'user', user_id: victim.id, address: null, details: {} }])
  })

  test('erases what open requests leave behind later, and keeps their usage', async () => {
    const person = await owner(gateway)
    const { id: keyId, key } = await createKeyFor(gateway, person)
    const body = { prompt: 'hi', metadata: { note: 'late7k3' } }
    const headers = { 'x-gateway-tags': 'who=late7k3' }
    expect((await sendRequest(gateway, 'POST', '/api/v1/chat', { token: key, body, headers })).status).toBe(200)
    const { accountId } = person
    await eventually(async () => (await getRows('usage_tags_daily', accountId)).length > 0, 15_000)
    // As if the records came after the deletion.
    await run(async ({ sql }) => {
      await sql`update accounts set name = '', deleted_at = now() where id = ${accountId}`
      await sql`insert into audit_log (id, account_id, actor, action, details) values (${`aud_${keyId}`}, ${accountId}, 'cli', 'account.deleted', '{}')`
    })
    await run(
      ({ sql }) => sql`
        insert into rejected_requests (request_id, at, account_id, key_id, streamed, error_code, category, latency_ms)
        values (${`req_${keyId}`}, now(), ${accountId}, ${keyId}, false, 'x', 'tag:who=late7k3', 1)`,
    )
    await eraseLate(gateway.deps.database, parts(), () => false)
    expect(await linesWith('late7k3')).toEqual([])
    expect(await getRows('usage_records', accountId)).toHaveLength(1)
    expect(await getRows('usage_daily', accountId)).toHaveLength(1)
  })

  test('finishes an interrupted erasure of old records with the next sweep', async () => {
    const person = await owner(gateway)
    const { accountId } = person
    const { id: keyId } = await createKeyFor(gateway, person)
    await tampered(gateway.deps.database, async sql => {
      await sql`
        insert into usage_records (request_id, at, account_id, key_id, provider, model, routing_mode, streamed, status,
          input_tokens, cached_input_tokens, cache_write_tokens, output_tokens, reasoning_tokens, estimated,
          billed_microcents, reserved_microcents, attempts, latency_ms, metadata)
        select 'req_' || count || ${accountId}::text, '2020-01-10'::timestamptz + count * interval '1 second', ${accountId}, ${keyId},
          'openai', 'gpt-4.1', 'auto', false, 'completed', 1, 0, 0, 1, 0, false, 5, 5, 1, 5, '{"note": "old7k3"}'
        from generate_series(1, 5001) as count`
    })
    // Erases nothing, as a kill right after the transaction of the deletion.
    const sql = (text: string) => run(({ sql: query }) => query.unsafe(text))
    await sql(`create trigger broken before update on usage_records for each row
      when (old.account_id = '${accountId}') execute function gateway_refuse()`)
    const body = { name: person.email, password: person.password }
    expect((await send(person, 'DELETE', '/account', body)).status).toBe(204)
    await sql('drop trigger broken on usage_records')
    const left = async () => (await linesWith('old7k3')).length
    expect(await left()).toBe(5001)
    await eraseLate(gateway.deps.database, parts(), () => true)
    expect(await left()).toBe(5001)
    await eraseLate(gateway.deps.database, parts(), () => false)
    expect(await left()).toBe(0)
    expect(await getRows('usage_records', accountId)).toHaveLength(5001)
    expect(
      (await getRows('audit_log', accountId)).filter(
        ({ details }) => details !== null && JSON.stringify(details) !== '{}',
      ),
    ).toHaveLength(0)
  })
})

const parts = () => {
  const { clock, newId, forgetCounters, log } = gateway.deps
  return { at: clock.now(), newId, forgetCounters, log }
}

describe('anonymization of a user', () => {
  test('leaves nothing that names the user, and the account with its other users', async () => {
    const boss = await owner(gateway)
    const member = await addMember(gateway, boss, 'member')
    const other = await owner(gateway)
    const named = 'member7k3'
    // What waits for a receiver, and what the anonymization itself reports.
    await send(boss, 'POST', '/webhooks', { url: 'https://a.example/', events: ['key.created', 'key.revoked'] })
    const { id: keyId, key } = await createKeyFor(gateway, member, named)
    const { key: kept } = await createKeyFor(gateway, boss, 'kept9k3')
    const chat = (token: string) =>
      sendRequest(gateway, 'POST', '/api/v1/chat', {
        token,
        body: { prompt: 'hi', metadata: { who: token === key ? named : 'kept9k3' } },
        headers: { 'x-gateway-tags': `who=${token === key ? named : 'kept9k3'}` },
      })
    for (const token of [key, kept]) expect((await chat(token)).status).toBe(200)
    await sendRequest(gateway, 'POST', '/api/v1/auth/login', { body: { email: member.email, password: 'a wrong one' } })
    await send(other, 'POST', '/team/invitations', { email: member.email })
    const { accountId, id: userId } = member
    await run(async ({ sql }) => {
      await sql`insert into user_identities values ('https://issuer.example', ${named}, ${userId}, now(), now())`
      await sql`insert into totp_secrets (user_id, secret, created_at) values (${userId}, ${named}, now())`
      await sql`insert into email_verifications values ('u1', ${userId}, ${member.email}, now(), now())`
      await sql`insert into password_resets values ('u2', ${userId}, ${member.email}, now(), now(), null)`
      await sql`update sessions set user_agent = ${named} where user_id = ${userId}`
      await sql`insert into usage_replaced values ('req_u', ${accountId}, now(), now(),
        ${JSON.stringify({ key_id: keyId, metadata: { who: named } })}::text::jsonb)`
      await sql`insert into rejected_requests (request_id, at, account_id, key_id, streamed, error_code, category, latency_ms)
        values ('req_v', now(), ${accountId}, ${keyId}, false, 'x', ${`tag:who=${named}`}, 1)`
    })
    // Names that people typed.
    const typed = `Team of ${member.email.toUpperCase()}`
    await send(boss, 'PATCH', '/account', { name: typed })
    const project = (await send(boss, 'POST', '/projects', { name: typed })).body.id
    await createKeyFor(gateway, boss, typed)
    await eventually(async () => (await getRows('usage_records', accountId)).length === 2, 15_000)
    expect((await linesWith(named)).length).toBeGreaterThan(5)
    expect((await linesWith(member.email)).length).toBeGreaterThan(3)
    // Each place held what must end: otherwise the search below would prove nothing.
    const naming = async () =>
      (await everything()).split('\n').filter(line => line.includes(named) || line.toLowerCase().includes(member.email))
    const places = new Set((await naming()).map(line => line.split(' ')[0]))
    for (const [table, fate] of Object.entries(ofUser))
      if (fate === 'user') expect([table, places.has(table)]).toEqual([table, true])
    const { database } = gateway.deps
    expect(await anonymizeUser(database, { accountId, userId }, parts())).toBe('unchanged')
    gateway.deps.announce()
    expect(await naming()).toEqual([])
    expect((await getRows('accounts', accountId))[0]?.name).toBe(accountId)
    expect((await getRows('projects', accountId)).map(({ name }) => name)).toEqual([project])
    const events = (await getRows('webhook_deliveries', accountId)).map(({ body }) => JSON.parse(String(body)))
    expect(events.filter(({ data }) => data.key_id === keyId).map(({ type, data }) => [type, data.name])).toEqual([
      ['key.created', ''],
      ['key.revoked', ''],
    ])
    expect(events.map(({ data }) => data.name)).toContain('kept9k3')
    expect((await linesWith(mailSubject(member.email))).length).toBe(0)
    const [entry] = await run(
      ({ sql }) =>
        sql`select target, details from audit_log where action = 'member.anonymized' and account_id = ${accountId}`,
    )
    expect(entry).toEqual({ target: userId, details: {} })
    await eventually(async () => (await chat(key)).status === 401, 10_000)
    // The account goes on, with the labels of the others.
    expect((await chat(kept)).status).toBe(200)
    expect((await send(boss, 'GET', '/account')).status).toBe(200)
    expect((await linesWith('kept9k3')).length).toBeGreaterThan(2)
    expect((await getRows('usage_records', accountId)).length).toBeGreaterThanOrEqual(2)
    expect(await anonymizeUser(database, { accountId, userId }, parts())).toBeNull()
  })

  test('gives the account of its only owner to the next member, and deletes it without one', async () => {
    const boss = await owner(gateway)
    const viewer = await addMember(gateway, boss, 'viewer')
    const admin = await addMember(gateway, boss, 'admin')
    const { database } = gateway.deps
    const { accountId } = boss
    const anonymize = (userId: string) => anonymizeUser(database, { accountId, userId }, parts())
    // The gateway named the account after its owner.
    expect((await linesWith(boss.email)).some(line => line.startsWith('accounts '))).toBe(true)
    expect(await anonymize(boss.id)).toEqual({ ownerId: admin.id })
    expect(await linesWith(boss.email)).toEqual([])
    const roles = async () =>
      (await run(({ sql }) => sql`select id, role from users where account_id = ${accountId} and removed_at is null`))
        .map(({ id, role }) => [id, role])
        .sort()
    expect(await roles()).toEqual(
      [
        [viewer.id, 'viewer'],
        [admin.id, 'owner'],
      ].sort(),
    )
    expect(await anonymize(viewer.id)).toBe('unchanged')
    expect(await anonymize(admin.id)).toBe('account_deleted')
    const [account] = await getRows('accounts', accountId)
    expect(account).toMatchObject({ name: '', deleted_at: expect.any(String) })
  })
})

test('account whose owner lost an unproven address to its holder: gets an owner, or is deleted with the next sweep', async () => {
  const { database } = gateway.deps
  const [single, boss, holder] = [await owner(gateway), await owner(gateway), await owner(gateway)]
  const member = await addMember(gateway, boss, 'member')
  const { key } = await createKeyFor(gateway, single)
  await run(({ sql }) => sql`update users set email_proven = false where id in (${single.id}, ${boss.id})`)
  for (const { email } of [single, boss]) await releaseUnverified(database, email, holder.accountId)
  await eraseLate(database, parts(), () => false)
  const [left] = await getRows('accounts', single.accountId)
  expect(left?.deleted_at).not.toBeNull()
  const owners = await run(
    ({ sql }) =>
      sql`select id from users where account_id = ${boss.accountId} and role = 'owner' and removed_at is null`,
  )
  expect([...owners]).toEqual([{ id: member.id }])
  await gateway.deps.keys.look()
  expect((await sendRequest(gateway, 'POST', '/api/v1/chat', { token: key, body: { prompt: 'hi' } })).status).toBe(401)
})

test('erasure: goes on with the other accounts when one fails, and logs the reason', async () => {
  const { database } = gateway.deps
  const ids = await Promise.all(['a', 'b', 'c'].map(async () => (await owner(gateway)).accountId))
  const [first = '', second = '', third = ''] = ids
  const note = (accountId: string) =>
    run(
      ({ sql }) => sql`
      insert into usage_records (request_id, at, account_id, key_id, provider, model, routing_mode, streamed, status,
        input_tokens, cached_input_tokens, cache_write_tokens, output_tokens, reasoning_tokens, estimated,
        billed_microcents, reserved_microcents, attempts, latency_ms, metadata)
      values (${`req_${accountId}`}, now(), ${accountId}, 'key_x', 'openai', 'gpt-4.1', 'auto', false, 'completed',
        1, 0, 0, 1, 0, false, 5, 5, 1, 5, '{"note": "alone7k3"}')`,
    )
  for (const accountId of ids) {
    await deleteAccount(database, accountId, parts())
    await note(accountId)
  }
  const sql = (text: string) => run(({ sql: query }) => query.unsafe(text))
  await sql(`create trigger broken before update on usage_records for each row
    when (old.account_id = '${first}') execute function gateway_refuse()`)
  const logged: unknown[] = []
  const forgotten: string[] = []
  const sweep = () =>
    eraseLate(
      database,
      {
        ...parts(),
        async forgetCounters(accountId) {
          if (accountId === second) throw new Error('no Redis')
          forgotten.push(accountId)
        },
        log: { warn: (event, fields) => logged.push([event, fields]) },
      },
      () => false,
    )
  await sweep()
  const left = async () => (await linesWith('alone7k3')).map(line => ids.find(id => line.includes(id)))
  expect(await left()).toEqual([first])
  expect(forgotten).toContain(third)
  expect(logged).toEqual([['erasure_failed', { failures: 2, detail: expect.stringContaining('is append-only') }]])
  await sql('drop trigger broken on usage_records')
  await sweep()
  expect(await left()).toEqual([])
})

test('account without an owner: stays when a member joined after the look for one', async () => {
  const { database } = gateway.deps
  const { accountId } = await owner(gateway)
  const isOnlyWithoutMembers = true
  expect(await deleteAccount(database, accountId, { ...parts(), isOnlyWithoutMembers })).toBe(false)
  expect((await getRows('accounts', accountId))[0]?.deleted_at).toBeNull()
  await run(({ sql }) => sql`update users set removed_at = now() where account_id = ${accountId}`)
  expect(await deleteAccount(database, accountId, { ...parts(), isOnlyWithoutMembers })).toBe(true)
})

test('erasure: changes no counts, and adds nothing to the audit log', async () => {
  const { accountId } = await owner(gateway)
  await run(
    ({ sql }) => sql`
      insert into usage_records (request_id, at, account_id, key_id, provider, model, routing_mode, streamed, status,
        input_tokens, cached_input_tokens, cache_write_tokens, output_tokens, reasoning_tokens, estimated,
        billed_microcents, reserved_microcents, attempts, latency_ms, metadata)
      values (${`req_${accountId}`}, now(), ${accountId}, 'key_x', 'openai', 'gpt-4.1', 'auto', false, 'completed',
        1, 0, 0, 1, 0, false, 5, 5, 1, 5, '{"a": "b"}')`,
  )
  for (const tampering of [
    `update usage_records set metadata = null, tags = null, billed_microcents = 0 where account_id = $1`,
    `update usage_records set metadata = '{"a": "c"}' where account_id = $1`,
    `update audit_log set address = '10.0.0.1' where account_id = $1`,
    `update audit_log set details = details || '{"more": true}' where account_id = $1`,
    `update audit_log set target = null where account_id = $1`,
    `update audit_log set details = '{}', action = 'x' where account_id = $1`,
  ])
    await expect(run(({ sql }) => sql.unsafe(tampering, [accountId]))).rejects.toThrow('append-only')
  await run(({ sql }) => sql`update usage_records set metadata = null where account_id = ${accountId}`)
  expect(await getRows('usage_replaced', accountId)).toHaveLength(0)
})

import { describe, expect, test } from 'bun:test'
import type { Caller } from '../../src/core/limits/plans.ts'
import { plans } from '../../src/core/limits/plans.ts'
import { callerAddress, createCallers } from '../../src/http/authentication.ts'

describe('clientAddress', () => {
  const trusted = new Set(['10.0.0.1', '10.0.0.2', '2001:db8::1'])
  const address = (socket: string | null, forwarded: string | null) =>
    callerAddress(socket, forwarded, text => trusted.has(text))

  test.each<[string, string | null, string | null, string]>([
    ['the socket’s own where nobody is trusted', '203.0.113.9', '198.51.100.7', '203.0.113.9'],
    ['the hop before a trusted proxy', '10.0.0.1', '198.51.100.7', '198.51.100.7'],
    [
      'the rightmost hop that is not trusted, whatever stands before it',
      '10.0.0.1',
      '6.6.6.6, 198.51.100.7, 10.0.0.2',
      '198.51.100.7',
    ],
    ['the first hop where all are trusted', '10.0.0.1', '10.0.0.2', '10.0.0.2'],
    ['the proxy’s own where it forwards nothing', '10.0.0.1', null, '10.0.0.1'],
    ['the proxy’s own where it forwards an empty hop', '10.0.0.1', ' , ', '10.0.0.1'],
    ['an IPv4 address in IPv6 form is the IPv4 address', '::ffff:203.0.113.9', null, '203.0.113.9'],
    ['a proxy in IPv6 form is the proxy', '::FFFF:10.0.0.1', '198.51.100.7', '198.51.100.7'],
    ['a port is not part of it', '10.0.0.1', '198.51.100.7:50001', '198.51.100.7'],
    ['nor are brackets', '10.0.0.1', '[2001:db8:1:2::3]:50001', '2001:db8:1:2::/64'],
    ['IPv6 counts by its network', '2001:DB8:0001:2:3:4:5:6', null, '2001:db8:1:2::/64'],
    ['IPv6 with a gap', '2001:db8::5', null, '2001:db8:0:0::/64'],
    ['IPv6 loopback', '::1', null, '0:0:0:0::/64'],
    ['IPv4 in IPv6 form with hexadecimal digits', '::ffff:cb00:7109', null, '203.0.113.9'],
    ['the socket’s own without its zone', 'fe80::1%eth0', null, 'fe80:0:0:0::/64'],
    ['nothing known', null, null, ''],
    ['nothing where the socket has no address', 'a name', '198.51.100.7', ''],
  ])('%s', (_name, socket, forwarded, expected) => {
    expect(address(socket, forwarded)).toBe(expected)
  })
})

describe('a hop that is no address', () => {
  const junk = [
    'unknown',
    '_hidden',
    '',
    '203.0.113',
    '203.0.113.256',
    '0x7f.1',
    '2130706433',
    '198.51.100.7.',
    '198.51.100.7:port',
    '[2001:db8::9',
    'fe80::1%<script>',
    '::ffff:198.51.100.7%x',
    "' or 1=1 --",
    '\u0660.0.0.1',
    'x'.repeat(10_000),
    '2001:db8::9/64',
  ]
  const isTrusted = (text: string) => text === '10.0.0.1' || text === '10.0.0.2'

  test.each(junk)('counts as the proxy that reports it: %j', hop => {
    expect(callerAddress('10.0.0.1', hop, isTrusted)).toBe('10.0.0.1')
    // The client may have written what is to its left.
    expect(callerAddress('10.0.0.1', `198.51.100.7, ${hop}`, isTrusted)).toBe('10.0.0.1')
    expect(callerAddress('10.0.0.1', `198.51.100.7, ${hop}, 10.0.0.2`, isTrusted)).toBe('10.0.0.2')
    expect(callerAddress('10.0.0.1', `${hop}, 198.51.100.7`, isTrusted)).toBe('198.51.100.7')
    expect(callerAddress('203.0.113.9', hop, isTrusted)).toBe('203.0.113.9')
  })
})

describe('createCallers', () => {
  const caller: Caller = { accountId: 'acc_1', keyId: 'key_1', plan: 'usage', limits: plans.usage }
  const own = 'gw_live_good'
  const asked: string[] = []
  const keys = {
    recall: () => null,
    isExpired: (key: string) => key === 'expired',
    find(key: string) {
      asked.push(key)
      return key === 'good' || key === own ? caller : null
    },
  }
  const { authenticate } = createCallers(keys, { take: () => 0 })
  const found = async (headers: Record<string, string>) => authenticate(new Headers(headers), () => '192.0.2.1')
  const send = (headers: Record<string, string>) => found(headers).catch(error => `${error.status} ${error.code}`)

  test.each<[Record<string, string>, boolean]>([
    [{ authorization: 'Bearer good' }, true],
    [{ authorization: 'bearer  good ' }, true],
    [{ 'x-api-key': 'good' }, true],
    [{ authorization: 'Bearer good', 'x-api-key': 'bad' }, true],
    [{ authorization: 'Bearer bad', 'x-api-key': 'good' }, false],
    [{ authorization: 'Basic good', 'x-api-key': 'good' }, false],
    [{ authorization: `Bearer ${own}`, 'x-api-key': 'sk-ant-api03-other' }, true],
    [{ authorization: 'Bearer sk-ant-oat01-other', 'x-api-key': own }, true],
    [{ authorization: 'Basic dTpw', 'x-api-key': own }, true],
    [{ authorization: 'Bearer gw_live_revoked', 'x-api-key': own }, true],
    [{ authorization: `Bearer ${own}`, 'x-api-key': 'gw_live_revoked' }, true],
    [{ authorization: 'Bearer gw_live_revoked', 'x-api-key': 'gw_live_other' }, false],
    [{ authorization: 'Bearer sk-ant-oat01-other', 'x-api-key': 'sk-ant-api03-other' }, false],
    [{ authorization: 'good' }, false],
    [{ authorization: 'Bearer' }, false],
    [{}, false],
  ])('%j: %p', async (headers, isGood) => {
    expect(await send(headers)).toEqual(isGood ? caller : '401 invalid_api_key')
  })

  test('tells who holds an expired key that it has expired', async () => {
    const error = await found({ authorization: 'Bearer expired' }).catch(thrown => thrown)
    expect(error).toMatchObject({
      status: 401,
      code: 'invalid_api_key',
      message: expect.stringContaining('has expired'),
    })
    expect((await found({ authorization: 'Bearer bad' }).catch(thrown => thrown)).message).not.toContain('expired')
  })

  test('looks a key up once when the response needs the caller too', async () => {
    const looked: string[] = []
    const callers = createCallers(
      {
        recall(key) {
          looked.push(key)
          return key === 'cold' ? null : caller
        },
        find: () => caller,
        isExpired: () => false,
      },
      { take: () => 0 },
    )
    for (const key of ['warm', 'cold']) {
      const headers = new Headers({ 'x-api-key': key })
      expect(await callers.authenticate(headers, () => '192.0.2.1')).toEqual(caller)
      expect(await callers.recall(headers)).toEqual(caller)
    }
    const open = new Headers({ 'x-api-key': 'open' })
    expect([await callers.recall(open), await callers.recall(open)]).toEqual([caller, caller])
    expect(looked).toEqual(['warm', 'cold', 'open'])
  })

  test('does not retry a failed key with a foreign credential of the other header', async () => {
    asked.length = 0
    await send({ authorization: 'Bearer bad', 'x-api-key': 'good' })
    expect(asked).toEqual(['bad'])
  })
})

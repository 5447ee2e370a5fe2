import { describe, expect, test } from 'bun:test'
import { parseSentinelUrls, sentinelProblem } from '../../../src/core/text/sentinel-urls.ts'

describe('parseSentinelUrls', () => {
  test.each([
    [
      'without logins',
      'redis+sentinel://a/one,redis+sentinel://b:1/one',
      'redis://',
      ['redis://a:26379', 'redis://b:1'],
    ],
    ['with TLS', 'rediss+sentinel://a/one', 'rediss://', ['rediss://a:26379']],
    ['with a login of the servers', 'redis+sentinel://u:p%40@a/one', 'redis://u:p%40@', ['redis://a:26379']],
    [
      'with both logins, which apply to all',
      'redis+sentinel://:p@a/one?sentinel_password=s+%2C%26,redis+sentinel://b/one',
      'redis://:p@',
      ['redis://:s%2B%2C%26@a:26379', 'redis://:s%2B%2C%26@b:26379'],
    ],
    [
      'with a user of the Sentinels, in any order and repeated',
      'redis+sentinel://a/one?sentinel_password=a=b&sentinel_username=u,redis+sentinel://b/one?sentinel_username=u&sentinel_password=a%3Db',
      'redis://',
      ['redis://u:a%3Db@a:26379', 'redis://u:a%3Db@b:26379'],
    ],
    ['of IPv6 hosts', 'redis+sentinel://[::1]/one', 'redis://', ['redis://[::1]:26379']],
  ])('reads URLs %s', (_, list, primaryPrefix, urls) => {
    expect(parseSentinelUrls(list.split(','))).toEqual({ urls, name: 'one', primaryPrefix })
  })
})

describe('sentinelProblem', () => {
  test.each([
    ['redis+sentinel://a/one,redis://b', 'must not be mixed'],
    ['redis+sentinel://a/one,redis+sentinel://b/two', 'the name of the same primary'],
    ['redis+sentinel://a', 'the name of the same primary'],
    ['redis+sentinel://a/one/1', 'only database 0 is supported'],
    ['redis+sentinel://a/one,rediss+sentinel://b/one', 'must all use TLS'],
    ['redis+sentinel://:p@a/one,redis+sentinel://:q@b/one', 'the credentials of the first'],
    ['redis+sentinel://a/one,redis+sentinel://b/one?sentinel_password=q', 'the credentials of the first'],
    ['redis+sentinel://a/one?sentinel_username=u', 'sentinel_password is missing'],
    ['redis+sentinel://a/one?sentinel_password=', 'sentinel_password is missing'],
    ['redis+sentinel://a/one?sentinel_password=p&tls=1', 'accepts only sentinel_username and sentinel_password'],
    ['redis+sentinel://a/one?sentinel_password=p&sentinel_password=q', 'each once'],
    ['redis+sentinel://a/one?sentinel_password=50%', 'percent-encoded'],
    ['redis+sentinel://:50%@a/one', 'percent-encoded'],
    ['redis+sentinel://a/one?sentinel_password=p#q', 'percent-encoded'],
    ['redis+sentinel://a%zz/one', 'no valid host'],
  ])('reports %s', (list, problem) => {
    const found = sentinelProblem(list.split(','))
    expect(found).toContain(problem)
    expect(found).not.toContain('50%')
  })
})

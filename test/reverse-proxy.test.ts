/** The sample for nginx, in a real nginx in front of a gateway. */
import { afterAll, beforeAll, expect, test } from 'bun:test'
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { eventually } from './harness/eventually.ts'
import { freePort } from './harness/free-port.ts'
import { type Gateway, startGateway } from './harness/gateway.ts'
import { describeNeeding } from './harness/needs.ts'

describeNeeding('nginx', 'sample for nginx', () => {
  let gateway: Gateway
  let nginx: Bun.Subprocess
  const folder = mkdtempSync(join(tmpdir(), 'gateway-ai-nginx-'))
  const port = freePort()
  const url = `http://127.0.0.1:${port}`
  beforeAll(async () => {
    gateway = await startGateway({ TRUSTED_PROXIES: '127.0.0.1' })
    const sample = readFileSync(join(import.meta.dir, '../deploy/samples/nginx.conf'), 'utf8')
    const server = sample
      .replace('127.0.0.1:3000', new URL(gateway.url).host)
      .replace('listen 80;', `listen 127.0.0.1:${port};`)
    const places = ['client_body', 'proxy', 'fastcgi', 'uwsgi', 'scgi'].map(kind => `${kind}_temp_path ${folder}/t;`)
    const user = process.getuid?.() === 0 ? 'user root;' : ''
    mkdirSync(join(folder, 't'))
    writeFileSync(
      join(folder, 'nginx.conf'),
      `${user} daemon off; pid ${folder}/pid; error_log stderr; events {} http { access_log off; ${places.join(' ')} ${server} }`,
    )
    nginx = Bun.spawn(['nginx', '-p', folder, '-c', join(folder, 'nginx.conf')], { stdout: 'ignore', stderr: 'ignore' })
    await eventually(async () => (await fetch(`${url}/readyz`).catch(() => null))?.ok === true, 30_000)
  })
  afterAll(async () => {
    nginx.kill()
    await Promise.all([nginx.exited, gateway.stop()])
    rmSync(folder, { recursive: true, force: true })
  })

  const post = (path: string, body: object, signal: AbortSignal | null = null) =>
    fetch(url + path, {
      method: 'POST',
      headers: { authorization: `Bearer ${gateway.key}`, 'content-type': 'application/json' },
      body: JSON.stringify(body),
      signal,
    })

  test('nginx: passes the beginning of a stream on while the rest is not written', async () => {
    const leaving = new AbortController()
    const content = 'Say something long. [[sim:tokens=400, hang_after=60]]'
    const body = { model: 'openai/gpt-5.5', stream: true, messages: [{ role: 'user', content }] }
    const answer = await post('/v1/chat/completions', body, leaving.signal)
    expect(answer.headers.get('content-type')).toStartWith('text/event-stream')
    const reader = answer.body?.pipeThrough(new TextDecoderStream()).getReader()
    let text = ''
    while (!text.includes('"content":"')) text += (await reader?.read())?.value ?? ''
    expect(text).not.toContain('[DONE]')
    leaving.abort()
  })

  test('nginx: passes a body on that is larger than its usual limit', async () => {
    const url = `data:image/png;base64,${Buffer.alloc(6_000_000, 'x').toString('base64')}`
    const content = [
      { type: 'text', text: 'What is this?' },
      { type: 'image_url', image_url: { url } },
    ]
    const answer = await post('/v1/chat/completions', {
      model: 'openai/gpt-5.5',
      messages: [{ role: 'user', content }],
    })
    expect([answer.status, answer.headers.has('x-request-id')]).toEqual([200, true])
  })
})

/** The baseline: the minimum work of a Bun process between a client and a provider. Argument: the upstream's port. */
const upstream = `http://127.0.0.1:${process.argv[2]}`

const server = Bun.serve({
  hostname: '127.0.0.1',
  port: 0,
  async fetch(request) {
    const body = await request.text()
    const answer = await fetch(upstream + new URL(request.url).pathname, {
      method: 'POST',
      headers: { 'content-type': 'application/json', authorization: request.headers.get('authorization') ?? '' },
      body,
    })
    return new Response(answer.body, {
      status: answer.status,
      headers: { 'content-type': answer.headers.get('content-type') ?? '' },
    })
  },
})
process.stdout.write(`${server.port}\n`)

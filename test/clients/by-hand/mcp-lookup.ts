/** A Model Context Protocol server on standard input and output with one tool: `lookup`. */
import { createInterface } from 'node:readline'

const tool = {
  name: 'lookup',
  description: 'Looks up a value by its key.',
  inputSchema: { type: 'object', properties: { key: { type: 'string' } }, required: ['key'] },
}

function findResult(method: string, params: Record<string, unknown>): object | null {
  switch (method) {
    case 'initialize':
      return {
        protocolVersion: params.protocolVersion,
        capabilities: { tools: {} },
        serverInfo: { name: 'lookup', version: '1' },
      }
    case 'tools/list':
      return { tools: [tool] }
    case 'tools/call':
      return { content: [{ type: 'text', text: `looked up ${JSON.stringify(params.arguments)}` }] }
    case 'ping':
      return {}
    default:
      return null
  }
}

for await (const line of createInterface({ input: process.stdin })) {
  const { id, method, params = {} } = JSON.parse(line)
  if (id === undefined) continue
  const result = findResult(method, params)
  const outcome = result === null ? { error: { code: -32601, message: 'unknown method' } } : { result }
  process.stdout.write(`${JSON.stringify({ jsonrpc: '2.0', id, ...outcome })}\n`)
}

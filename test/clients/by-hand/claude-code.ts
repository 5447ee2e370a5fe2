/**
 * Claude Code against the gateway: `bun test/clients/by-hand/claude-code.ts <path of claude>`. One task with the shell, a file
 * and an MCP server per provider family, and one more turn in the same session.
 */
import { existsSync, mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { type Check, type Rig, report, run, startRig } from './rig.ts'

const claude = process.argv[2] ?? 'claude'
const models = ['claude-sonnet-5-5', 'openai/gpt-5.5', 'relay/agent', 'gateway-ai']

async function getChecks(rig: Rig, model: string): Promise<readonly Check[]> {
  const work = join(rig.folder, `work-${model.replace('/', '-')}`)
  mkdirSync(work)
  const servers = { notes: { command: process.execPath, args: [join(import.meta.dir, 'mcp-lookup.ts')] } }
  writeFileSync(join(work, 'mcp.json'), JSON.stringify({ mcpServers: servers }))
  const env = {
    HOME: work,
    ANTHROPIC_BASE_URL: rig.gateway.url,
    ANTHROPIC_AUTH_TOKEN: rig.gateway.key,
    CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC: '1',
  }
  const start = rig.agent.log.length
  const tools = ['--allowedTools', 'Bash,Write,mcp__notes__lookup', '--mcp-config', join(work, 'mcp.json')]
  const send = (...words: string[]) => run([claude, '-p', ...words, '--model', model, ...tools], work, env)
  const first = await send('PLAN: shell, file, search, mcp')
  const again = await send('--continue', 'PLAN: shell')
  const requests = rig.agent.log.slice(start)
  if (process.env.VERBOSE) process.stdout.write(`${first.out}\n${again.out}\n${requests.join('\n')}\n`)
  return [
    { name: 'ends well', isMet: first.code === 0 && again.code === 0 },
    { name: 'runs the shell', isMet: requests.some(line => line.includes('"answers":"Bash"')) },
    { name: 'writes a file', isMet: existsSync(join(rig.folder, 'made.txt')) || existsSync(join(work, 'made.txt')) },
    { name: 'calls the MCP server', isMet: first.out.includes('looked up') },
    { name: 'continues', isMet: again.out.includes('shell-ran') },
    { name: 'brings reasoning back', isMet: !requests.at(-1)?.includes('"replayed":[]') },
  ]
}

const rig = await startRig()
const version = (await run([claude, '--version'], rig.folder, { HOME: rig.folder })).out.trim()
let failed = 0
for (const model of models) failed += report(`${version}, ${model}`, await getChecks(rig, model))
await rig.stop()
process.exit(failed === 0 ? 0 : 1)

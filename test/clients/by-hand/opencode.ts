/**
 * opencode against the gateway: `bun test/clients/by-hand/opencode.ts <path of opencode>`. One task with the shell, a file
 * and an MCP server through each of its three provider packages, and one more turn in the same session.
 */
import { existsSync, mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { type Check, type Rig, report, run, startRig } from './rig.ts'

const opencode = process.argv[2] ?? 'opencode'
const packages = ['@ai-sdk/openai-compatible', '@ai-sdk/openai', '@ai-sdk/anthropic']
const models = ['relay/agent', 'openai/gpt-5.5', 'anthropic/claude-sonnet-5-5', 'gateway-ai']

function getConfig({ gateway }: Rig, npm: string): string {
  return JSON.stringify({
    $schema: 'https://opencode.ai/config.json',
    autoupdate: false,
    share: 'disabled',
    permission: { edit: 'allow', bash: 'allow', webfetch: 'allow', external_directory: 'allow' },
    provider: {
      gateway: {
        npm,
        name: 'gateway-ai',
        options: { baseURL: `${gateway.url}/v1`, apiKey: '{env:GATEWAY_KEY}' },
        models: Object.fromEntries(
          models.map(id => [
            id,
            { name: id, tool_call: true, reasoning: true, limit: { context: 200_000, output: 32_000 } },
          ]),
        ),
      },
    },
    mcp: {
      notes: { type: 'local', command: [process.execPath, join(import.meta.dir, 'mcp-lookup.ts')], enabled: true },
    },
  })
}

async function getChecks(rig: Rig, npm: string, model: string): Promise<readonly Check[]> {
  const work = join(rig.folder, `${npm}-${model}`.replace(/\W/g, '-'))
  mkdirSync(work)
  writeFileSync(join(work, 'opencode.json'), getConfig(rig, npm))
  const env = {
    HOME: work,
    XDG_CONFIG_HOME: join(work, 'config'),
    XDG_DATA_HOME: join(work, 'data'),
    XDG_CACHE_HOME: join(rig.folder, 'cache'),
    GATEWAY_KEY: rig.gateway.key,
    OPENCODE_DISABLE_MODELS_FETCH: 'true',
  }
  const start = rig.agent.log.length
  const send = (...words: string[]) => run([opencode, 'run', '--model', `gateway/${model}`, ...words], work, env)
  const first = await send('PLAN: shell, file, mcp')
  const again = await send('--continue', 'PLAN: shell')
  const requests = rig.agent.log.slice(start)
  if (process.env.VERBOSE) process.stdout.write(`${first.out}\n${again.out}\n${requests.join('\n')}\n`)
  return [
    { name: 'ends well', isMet: first.code === 0 && again.code === 0 },
    { name: 'runs the shell', isMet: requests.some(line => line.includes('"answers":"bash"')) },
    { name: 'writes a file', isMet: existsSync(join(work, 'made.txt')) },
    { name: 'calls the MCP server', isMet: first.out.includes('Finished. The last tool returned: looked up') },
    { name: 'continues', isMet: again.out.includes('Finished. The last tool returned: shell-ran') },
  ]
}

const rig = await startRig()
const version = (await run([opencode, '--version'], rig.folder, { HOME: rig.folder })).out.trim()
let failed = 0
for (const npm of packages)
  for (const model of models)
    failed += report(`opencode ${version}, ${npm}, ${model}`, await getChecks(rig, npm, model))
await rig.stop()
process.exit(failed === 0 ? 0 : 1)

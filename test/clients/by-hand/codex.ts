/**
 * Codex CLI against the gateway: `bun test/clients/by-hand/codex.ts <path of codex>`. Per provider family one task with the
 * shell, `apply_patch` and an MCP server, and one in the resumed conversation.
 */
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { type Check, type Rig, report, run, startRig } from './rig.ts'

const codex = process.argv[2] ?? 'codex'
const models = [
  'relay/agent',
  'openai/gpt-5.5',
  'anthropic/claude-sonnet-5-5',
  'gateway-ai',
  // Codex's own entry, which runs all tools by a program.
  'gpt-5.6-luna',
]

const mcpServer = join(import.meta.dir, 'mcp-lookup.ts')

function getConfig({ gateway, folder }: Rig, model: string): string {
  return `
model = "${model}"
model_provider = "gateway"
${model === 'gpt-5.6-luna' ? '' : `model_catalog_json = "${join(folder, 'catalog.json')}"`}
approval_policy = "never"
sandbox_mode = "danger-full-access"

[model_providers.gateway]
name = "gateway-ai"
base_url = "${gateway.url}/v1"
env_key = "GATEWAY_KEY"
wire_api = "responses"

[mcp_servers.notes]
command = "${process.execPath}"
args = ["${mcpServer}"]
`
}

async function getChecks(rig: Rig, model: string): Promise<readonly Check[]> {
  const home = join(rig.folder, `home-${model.replace('/', '-')}`)
  const work = join(rig.folder, `work-${model.replace('/', '-')}`)
  mkdirSync(home)
  mkdirSync(work)
  writeFileSync(join(home, 'config.toml'), getConfig(rig, model))
  const env = { CODEX_HOME: home, HOME: home, GATEWAY_KEY: rig.gateway.key }
  const start = rig.agent.log.length
  const exec = (...words: string[]) => run([codex, 'exec', '--skip-git-repo-check', ...words], work, env)
  const first = await exec('PLAN: shell, file, mcp')
  const resumed = await exec('resume', '--last', 'PLAN: shell')
  const requests = rig.agent.log.slice(start)
  if (process.env.VERBOSE) process.stdout.write(`${first.out}\n${resumed.out}\n${requests.join('\n')}\n`)
  const made = join(work, 'made.txt')
  return [
    { name: 'ends well', isMet: first.code === 0 && resumed.code === 0 },
    { name: 'knows the model', isMet: !/metadata for .* not found/i.test(first.out) },
    { name: 'runs the shell', isMet: first.out.includes('shell-ran') },
    { name: 'applies a patch', isMet: existsSync(made) && readFileSync(made, 'utf8') === 'hello from the tool\n' },
    { name: 'calls the MCP server', isMet: /Finished. The last tool returned: [\s\S]*looked up/.test(first.out) },
    { name: 'resumes', isMet: /Finished. The last tool returned: [\s\S]*shell-ran/.test(resumed.out) },
    { name: 'brings reasoning back', isMet: !requests.at(-1)?.includes('"replayed":[]') },
  ]
}

const rig = await startRig()
const version = (await run([codex, '--version'], rig.folder, {})).out.trim()
const list = await fetch(`${rig.gateway.url}/v1/models?client_version=${version.split(' ').at(-1)}`)
writeFileSync(join(rig.folder, 'catalog.json'), await list.text())
let failed = 0
for (const model of models) failed += report(`${version}, ${model}`, await getChecks(rig, model))
await rig.stop()
process.exit(failed === 0 ? 0 : 1)

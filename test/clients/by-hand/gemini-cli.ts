/**
 * gemini-cli against the gateway: `bun test/clients/by-hand/gemini-cli.ts <path of gemini>`. Per provider family one task that
 * writes, edits and reads a file, and one in the resumed conversation.
 */
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { type Check, type Rig, report, run, startRig } from './rig.ts'

const gemini = process.argv[2] ?? 'gemini'
const models = ['relay/agent', 'openai/gpt-5.5', 'anthropic/claude-sonnet-5-5', 'gateway-ai']

async function getChecks(rig: Rig, model: string): Promise<readonly Check[]> {
  const home = join(rig.folder, `home-${model.replace('/', '-')}`)
  // The scripted agent writes to this folder.
  const work = rig.folder
  const made = join(work, 'made.txt')
  mkdirSync(join(home, '.gemini'), { recursive: true })
  const settings = {
    security: { auth: { selectedType: 'gemini-api-key' } },
    privacy: { usageStatisticsEnabled: false },
  }
  writeFileSync(join(home, '.gemini', 'settings.json'), JSON.stringify(settings))
  const env = {
    HOME: home,
    GEMINI_API_KEY: rig.gateway.key,
    GOOGLE_GEMINI_BASE_URL: rig.gateway.url,
    GEMINI_CLI_TRUST_WORKSPACE: 'true',
    GEMINI_SANDBOX: 'false',
  }
  const start = rig.agent.log.length
  const runTask = (...words: string[]) => run([gemini, '--yolo', '-m', model, ...words], work, env)
  const first = await runTask('-p', 'PLAN: file, edit, read')
  const replays = rig.agent.log.slice(start).some(line => !line.includes('"replayed":[]'))
  const text = existsSync(made) ? readFileSync(made, 'utf8') : ''
  const resumed = await runTask('--resume', 'latest', '-p', 'PLAN: shell')
  const requests = rig.agent.log.slice(start)
  if (process.env.VERBOSE) process.stdout.write(`${first.out}\n${resumed.out}\n${requests.join('\n')}\n`)
  return [
    { name: 'ends well', isMet: first.code === 0 && resumed.code === 0 },
    { name: 'writes and edits a file', isMet: text === 'hello from the editor\n' },
    { name: 'reads it', isMet: /Finished. The last tool returned: [\s\S]*hello from the editor/.test(first.out) },
    { name: 'resumes', isMet: /Finished. The last tool returned: [\s\S]*shell-ran/.test(resumed.out) },
    // OpenAI's Chat Completions has no field for it.
    { name: 'brings reasoning back', isMet: replays || /^(?:openai|gateway-ai)/.test(model) },
  ]
}

const rig = await startRig()
const version = (await run([gemini, '--version'], rig.folder, { HOME: rig.folder })).out.trim()
let failed = 0
for (const model of models) failed += report(`gemini-cli ${version}, ${model}`, await getChecks(rig, model))
await rig.stop()
process.exit(failed === 0 ? 0 : 1)

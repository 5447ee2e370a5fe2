/**
 * The Python clients against the gateway: `bun test/clients/by-hand/python.ts`. Makes two virtual environments in the folder
 * VENVS, runs each program on a gateway with simulated providers, and prints a table. LangChain's tests that need a model
 * with a mind of its own run on the scripted agent.
 */
import { existsSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { startGateway } from '../../harness/gateway.ts'
import { run, startRig } from './rig.ts'

const here = import.meta.dir
const venvs = process.env.VENVS ?? join(tmpdir(), 'gateway-ai-venvs')
const models = ['openai/gpt-5.4-mini', 'anthropic/claude-haiku-4-5', 'google/gemini-3.8-flash']
/** Tests whose prompt must make the model call a tool, or fill it with words of the prompt. */
const needsMind = 'agent_loop or unicode_tool_call'

async function venv(name: string): Promise<string> {
  const folder = join(venvs, name)
  const python = join(folder, 'bin', 'python')
  if (existsSync(python)) return python
  await orThrow([process.env.PYTHON ?? 'python3', '-m', 'venv', folder])
  await orThrow([python, '-m', 'pip', 'install', '-q', '-r', join(here, `requirements-${name}.txt`)])
  return python
}

async function orThrow(command: readonly string[]): Promise<void> {
  const child = Bun.spawn([...command], { stdout: 'inherit', stderr: 'inherit' })
  if ((await child.exited) !== 0) throw new Error(`failed: ${command.join(' ')}`)
}

let failed = 0
async function program(title: string, command: readonly string[], env: Record<string, string> = {}): Promise<void> {
  const { code, out } = await run(command, here, { PYTHONDONTWRITEBYTECODE: '1', ...env })
  if (code !== 0) failed++
  const checks = out.match(/^ok: /gm)?.length
  const [tests] = /\d+ (?:passed|failed).* in /.exec(out) ?? []
  const count = tests?.replace(/ in $/, '') ?? `${checks ?? 0} checks`
  process.stdout.write(`${code === 0 ? 'pass' : 'FAIL'}  ${title}: ${count}\n`)
  if (code !== 0) process.stdout.write(`${out.slice(-3_000)}\n`)
}

const main = await venv('main')
const llamaIndex = await venv('llamaindex')
const tiktoken = join(venvs, 'tiktoken')
await orThrow([process.execPath, join(here, 'tiktoken-cache.ts'), tiktoken])

const gateway = await startGateway()
const { url, key } = gateway
await program('openai', [main, join(here, '..', 'openai_python.py'), `${url}/v1`, key])
await program('anthropic', [main, join(here, '..', 'anthropic_python.py'), url, key])
await program('google-genai', [main, 'google_python.py', url, key])
const pytest = [main, '-W', 'ignore', '-m', 'pytest', '-q', '-p', 'no:cacheprovider', '-o', 'asyncio_mode=auto']
const suite = 'langchain_standard.py'
for (const model of models) {
  await program(`openai-agents, ${model}`, [main, 'agents_python.py', url, key, model])
  await program(`LlamaIndex, ${model}`, [llamaIndex, 'llamaindex_python.py', url, key, model], {
    TIKTOKEN_CACHE_DIR: tiktoken,
  })
  const env = { GATEWAY_URL: url, GATEWAY_KEY: key, MODEL: model, TIKTOKEN_CACHE_DIR: tiktoken }
  // That test replays a signature of the real service, which the simulated one refuses.
  const left = model.startsWith('anthropic/') ? `${needsMind} or (TestMessages and test_anthropic_inputs)` : needsMind
  await program(`LangChain, ${model}`, [...pytest, suite, '-k', `not (${left})`], env)
}
await gateway.stop()

const rig = await startRig()
for (const model of ['openai/gpt-5.5', 'anthropic/claude-haiku-4-5', 'relay/agent']) {
  const env = { GATEWAY_URL: rig.gateway.url, GATEWAY_KEY: rig.gateway.key, MODEL: model }
  await program(`LangChain, scripted ${model}`, [...pytest, suite, '-k', needsMind], env)
}
await rig.stop()
process.exit(failed === 0 ? 0 : 1)

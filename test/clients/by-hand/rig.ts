/** A gateway for runs by hand: `relay`, OpenAI and Anthropic are scripted agents, or all three providers are simulated. */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type Gateway, startGateway } from '../../harness/gateway.ts'
import { type ScriptedAgent, startScriptedAgent } from './scripted-agent.ts'

export type Rig = {
  readonly gateway: Gateway
  readonly agent: ScriptedAgent
  /** Where the client works. */
  readonly folder: string
  stop(): Promise<void>
}

export async function startRig(): Promise<Rig> {
  const folder = mkdtempSync(join(tmpdir(), 'by-hand-'))
  const agent = startScriptedAgent(folder)
  const config = join(folder, 'gateway.json')
  const model = {
    id: 'agent',
    display_name: 'Scripted agent',
    pricing: { input_per_mtok: 1, output_per_mtok: 1 },
    context_window: 200_000,
    max_output_tokens: 32_000,
    capabilities: { tools: true, reasoning: true, json_schema: true, vision: true },
    parameters: { stream_options: true, parallel_tool_calls: true, response_format: 'json_schema' },
  }
  writeFileSync(
    config,
    JSON.stringify({
      providers: [{ id: 'relay', base_url: `${agent.url}/v1`, models: [model, { ...model, id: 'gpt-5.6-luna' }] }],
    }),
  )
  const gateway = await startGateway({
    GATEWAY_CONFIG: config,
    OPENAI_API_KEY: 'k',
    OPENAI_BASE_URL: `${agent.url}/v1`,
    ANTHROPIC_API_KEY: 'k',
    ANTHROPIC_BASE_URL: agent.url,
  })
  return {
    gateway,
    agent,
    folder,
    async stop() {
      await gateway.stop()
      agent.stop()
      rmSync(folder, { recursive: true, force: true })
    },
  }
}

type Run = { readonly code: number; readonly out: string }

/** Runs a client without standard input, at most 5 minutes, and returns both of its outputs. */
export async function run(command: readonly string[], cwd: string, env: Record<string, string>): Promise<Run> {
  const child = Bun.spawn([...command], {
    cwd,
    env: { PATH: process.env.PATH ?? '', ...env },
    stdin: 'ignore',
    stdout: 'pipe',
    stderr: 'pipe',
    timeout: 300_000,
  })
  const [out, err, code] = await Promise.all([child.stdout.text(), child.stderr.text(), child.exited])
  return { code, out: out + err }
}

export type Check = { readonly name: string; readonly isMet: boolean }

/** Prints one line per check and returns the number of failed ones. */
export function report(title: string, checks: readonly Check[]): number {
  for (const { name, isMet } of checks) process.stdout.write(`${isMet ? 'pass' : 'FAIL'}  ${title}: ${name}\n`)
  return checks.filter(({ isMet }) => !isMet).length
}

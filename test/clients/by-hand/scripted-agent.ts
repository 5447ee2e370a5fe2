/**
 * A scripted model behind three wire formats, for clients that need one with a mind of its own. It follows the plan in the
 * last user message (`PLAN: shell, file, mcp`), one tool call per step, and then says what the last tool returned. Without a
 * plan it calls the first tool once. Each turn begins with reasoning, and the next one records whether that came back.
 */
import { startUpstream, type Upstream } from '../../harness/upstream.ts'
import { type Fields, findWire, type OfferedTool, type Output, type Turn } from './scripted-wires.ts'

const patch = '*** Begin Patch\n*** Add File: made.txt\n+hello from the tool\n*** End Patch\n'

type Step = {
  readonly tool: RegExp
  /** Arguments by the names of parameters. */
  readonly values: Fields
  /** The same as a program, for the tool `exec` with which Codex runs all others. */
  readonly code?: string
}

const steps: Readonly<Record<string, Step>> = {
  shell: {
    tool: /^(exec_command|shell_command|run_shell_command|shell|bash|Bash)$/,
    values: { cmd: 'echo shell-ran', command: 'echo shell-ran', description: 'prints a line' },
    code: 'text(await tools.exec_command({ cmd: "echo shell-ran" }))',
  },
  file: {
    tool: /^(apply_patch|write|Write|write_file)$/,
    values: {
      input: patch,
      patchText: patch,
      filePath: 'made.txt',
      file_path: `{folder}/made.txt`,
      content: 'hello from the tool\n',
    },
    code: `text(await tools.apply_patch(${JSON.stringify(patch)}))`,
  },
  edit: {
    tool: /^replace$/,
    values: {
      file_path: '{folder}/made.txt',
      instruction: 'Name the editor.',
      old_string: 'the tool',
      new_string: 'the editor',
    },
  },
  read: { tool: /^(read|Read|read_file)$/, values: { filePath: 'made.txt', file_path: `{folder}/made.txt` } },
  search: { tool: /^ToolSearch$/, values: { query: 'select:mcp__notes__lookup', max_results: 5 } },
  mcp: {
    tool: /lookup$/,
    values: { key: 'color' },
    code: 'text(await tools.mcp__notes__lookup({ key: "color" }))',
  },
}

export type ScriptedAgent = Upstream & {
  /** One line per request: endpoint, offered tools, and reasoning that came back. */
  readonly log: readonly string[]
}

/** Starts the agent. `folder` is where clients work, for tools that need absolute paths. */
export function startScriptedAgent(folder: string): ScriptedAgent {
  const log: string[] = []
  const upstream = startUpstream(request => {
    const wire = findWire(request.path)
    if (wire === null) return { status: 404, headers: { 'content-type': 'application/json' }, pieces: ['{}'] }
    const turn = wire.read(JSON.parse(request.body))
    const output = getOutput(turn, request.index, folder)
    log.push(
      JSON.stringify({
        path: request.path,
        model: turn.model,
        tools: turn.tools.map(({ namespace, name, kind }) => `${namespace ?? ''}.${name}:${kind}`),
        effort: turn.effort,
        replayed: turn.replayed,
        answers: output.call?.tool.name ?? output.text,
      }),
    )
    return wire.write(turn, output, request)
  })
  return Object.assign(upstream, { log })
}

function getOutput({ entries, tools }: Turn, index: number, folder: string): Output {
  const reasoning = `reasoning ${index}`
  const [first] = tools
  // Clients also ask for titles and summaries, without tools.
  if (first === undefined) return { reasoning, text: 'Scripted title', call: null }
  const start = entries.findLastIndex(({ kind, text }) => kind === 'user' && text.includes('PLAN:'))
  const results = entries.slice(start + 1).filter(({ kind }) => kind === 'result')
  const text = `Finished. The last tool returned: ${results.at(-1)?.text.trim().slice(-200) ?? 'nothing'}`
  const planned = /PLAN: ([\w, ]+)/.exec(entries[start]?.text ?? '')?.[1] ?? 'any'
  const step = planned.split(',')[results.length]?.trim()
  if (step === undefined) return { reasoning, text, call: null }
  const id = `call_${index}`
  if (step === 'any') {
    const asked = entries.findLast(({ kind }) => kind === 'user')?.text ?? ''
    return { reasoning, text: '', call: { id, tool: first, input: inputFrom(first, asked) } }
  }
  const { tool: pattern, values, code } = steps[step] ?? { tool: /^$/, values: {} }
  const own = tools.find(({ name }) => pattern.test(name))
  const tool = own ?? tools.find(({ name }) => name === 'exec')
  if (own === undefined && tool !== undefined && code !== undefined)
    return { reasoning, text: '', call: { id, tool, input: inputFor(tool, { input: code }, folder) } }
  if (tool === undefined) return { reasoning, text: `No tool for the step ${step}.`, call: null }
  return { reasoning, text: '', call: { id, tool, input: inputFor(tool, values, folder) } }
}

function inputFor(tool: OfferedTool, values: Fields, folder: string): string | Fields {
  if (tool.kind === 'custom') return String(values.input)
  const known = Object.entries(values).filter(([name]) => Object.hasOwn(tool.properties, name))
  return Object.fromEntries(
    known.map(([name, value]) => [name, typeof value === 'string' ? value.replace('{folder}', folder) : value]),
  )
}

/** Fills every parameter with the words of the prompt, or with those that it quotes. */
function inputFrom(tool: OfferedTool, asked: string): Fields {
  const words = /'([^']+)'/.exec(asked)?.[1] ?? asked
  return Object.fromEntries(Object.keys(tool.properties).map(name => [name, words]))
}

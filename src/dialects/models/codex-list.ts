/**
 * The catalog that Codex reads. Codex rejects all entries if one lacks a field or has an unknown value, so each entry has
 * the fields that releases from 0.144 to 0.169 require, and no optional one that they spell differently.
 */
import type { ReasoningEffort } from '../../core/chat/chat.ts'
import { autoModel, fullName, type Model } from '../../core/models/models.ts'
import type { CodexModel } from './schemas.ts'

/** Returns the entries of the models that can call tools, `gateway-ai` first: Codex's default is its first entry. */
export function codexModels(served: readonly Model[]): readonly CodexModel[] {
  const models = served.filter(({ capabilities }) => capabilities.tools)
  return [
    getEntry({
      slug: autoModel,
      displayName: 'gateway-ai: automatic routing',
      description: 'The gateway chooses a model for each request.',
      efforts: ['low', 'medium', 'high'],
      contextWindow: sharedWindow(models.map(getWindow)),
      vision: models.some(({ capabilities }) => capabilities.vision),
      reasons: true,
    }),
    ...models.map(model =>
      getEntry({
        // Under its full name, so that Codex's own entry for a plain OpenAI name stays in use beside it.
        slug: fullName(model),
        displayName: model.displayName,
        description: `${model.displayName} by ${model.provider}.`,
        efforts: getEfforts(model),
        contextWindow: getWindow(model),
        vision: model.capabilities.vision,
        reasons: model.capabilities.reasoning,
      }),
    ),
  ].map((entry, priority) => ({ ...entry, priority }))
}

type Listable = {
  readonly slug: string
  readonly displayName: string
  readonly description: string
  readonly efforts: readonly ReasoningEffort[]
  readonly contextWindow: number
  readonly vision: boolean
  readonly reasons: boolean
}

/** Maximum number of tokens of a tool's output that Codex keeps, as in its own catalog. */
const toolOutputTokens = 10_000

function getEntry({ slug, displayName, description, efforts, contextWindow, vision, reasons }: Listable): CodexModel {
  return {
    slug,
    display_name: displayName,
    description,
    default_reasoning_level: efforts.includes('medium') ? 'medium' : (efforts[0] ?? null),
    supported_reasoning_levels: efforts.map(effort => ({ effort, description: effortTexts[effort] })),
    shell_type: 'unified_exec',
    visibility: 'list',
    supported_in_api: true,
    priority: 0,
    availability_nux: null,
    upgrade: null,
    base_instructions: codexInstructions,
    // Without it, older releases do not ask for the reasoning that the next turn needs.
    supports_reasoning_summaries: reasons,
    supports_reasoning_summary_parameter: reasons,
    default_reasoning_summary: 'none',
    support_verbosity: false,
    default_verbosity: null,
    // A free-text tool. Models without that kind of tool get it as a function.
    apply_patch_tool_type: 'freeform',
    web_search_tool_type: 'text',
    truncation_policy: { mode: 'tokens', limit: toolOutputTokens },
    supports_parallel_tool_calls: true,
    supports_image_detail_original: false,
    context_window: contextWindow,
    max_context_window: contextWindow,
    effective_context_window_percent: 95,
    experimental_supported_tools: [],
    input_modalities: vision ? ['text', 'image'] : ['text'],
    supports_search_tool: false,
  }
}

const effortTexts: Readonly<Record<ReasoningEffort, string>> = {
  none: 'No reasoning',
  minimal: 'Minimal reasoning',
  low: 'Little reasoning, faster',
  medium: 'Balanced',
  high: 'More reasoning for harder tasks',
  xhigh: 'Extra high reasoning',
  max: 'Maximum reasoning',
}

/** A model with a token budget for reasoning has no levels of its own: the gateway converts the level to a budget. */
function getEfforts({ parameters: { efforts, reasoning } }: Model): readonly ReasoningEffort[] {
  const hasBudget = reasoning.kind === 'budget' || reasoning.kind === 'token_budget'
  return efforts.length === 0 && hasBudget ? ['low', 'medium', 'high'] : efforts
}

/** Returns the number of tokens that a conversation may have. */
function getWindow({ maxInputTokens, contextWindow }: Model): number {
  return maxInputTokens ?? contextWindow
}

/** Returns the largest window that at least half of the models have, so that routing keeps a choice in a long conversation. */
function sharedWindow(windows: readonly number[]): number {
  const descending = windows.toSorted((window, other) => other - window)
  return descending[Math.ceil(descending.length / 2) - 1] ?? smallestWindow
}

/** Without a model the value has no effect. It is not 0, because Codex divides by it. */
const smallestWindow = 128_000

/**
 * The system prompt that Codex uses with a model of this list. Codex has own prompts only for names in its bundled
 * catalog. An entry without a prompt would run the agent without one.
 */
const codexInstructions = `You are Codex, a coding agent in a terminal. You and the user share one working folder. Work until the user's task is solved, then stop.

# Work
- Read the files that matter before you change them. Prefer \`rg\` and \`rg --files\` for searches.
- Follow every AGENTS.md file whose folder contains a file that you change. A deeper file wins over a higher one; the user's own words win over both.
- Fix the cause of a problem and keep the change small and in the style of the code around it. Do not fix unrelated problems; mention them.
- Never revert or overwrite changes that you did not make. Never run \`git reset --hard\`, \`git checkout --\` or a commit unless the user asks.
- Check your work: run the tests, the type check or the program that covers the change, the most specific first.
- For a task with several steps, keep a plan with the plan tool if it exists, with one step in progress at a time.
- If a command is rejected by the sandbox or by the user, say so or ask for approval. Do not look for a way around it.

# Tools
- Call the tools that you are given, with exactly their names and parameters. Run independent calls together.
- Run shell commands with the shell tool and set its working folder instead of calling \`cd\`.
- Change files with the \`apply_patch\` tool if it exists. Its input is one patch:

*** Begin Patch
*** Update File: src/greeting.ts
@@ export function greet
-  return 'Hello'
+  return 'Hello, world'
*** Add File: notes.txt
+first line
*** Delete File: old.txt
*** End Patch

  In an update, a line begins with a space (unchanged), \`-\` (removed) or \`+\` (added). Give about three unchanged lines around a change, and \`@@\` with a function or class if they occur more than once. In a new file every line begins with \`+\`. Paths are relative. \`*** Move to: path\` after the Update line renames the file.
- Without that tool, run \`apply_patch\` as a shell command with the same text.

# Messages
- Before a group of tool calls, say in one short sentence what you do next.
- At the end, say what you changed and how you checked it, in plain and short text, with file references such as \`src/app.ts:42\`. Say openly what does not work or was not checked.
- If the user only asks a question, answer it and change nothing.`

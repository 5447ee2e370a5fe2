import { useState } from 'preact/hooks'
import type { ShownKey } from '../../console/keys/schemas.ts'
import type { CodeDialect, CodeRequest } from '../state/code-body.ts'
import { type CodeLanguage, codeLanguages, requestCode } from '../state/request-code.ts'
import { Snippet, Tabs } from './controls.tsx'
import { Dialog } from './dialog.tsx'
import { Card } from './page.tsx'

const dialectTitles: Readonly<Record<CodeDialect, string>> = {
  chat_completions: 'Chat Completions',
  responses: 'Responses',
  messages: 'Messages',
}
const languageTitles: Readonly<Record<CodeLanguage, string>> = {
  curl: 'curl',
  typescript: 'TypeScript',
  python: 'Python',
}

/** The request of the playground as code, in each API form and language. */
export function RequestCode({ request, onClose }: { readonly request: CodeRequest; readonly onClose: () => void }) {
  const [dialect, setDialect] = useState<CodeDialect>('chat_completions')
  const [language, setLanguage] = useState<CodeLanguage>('curl')
  return (
    <Dialog title="Request as code" onClose={onClose}>
      <div class="stack">
        <Tabs label="Dialect" tabs={dialectTitles} current={dialect} onChoice={setDialect} />
        <Tabs label="Language" tabs={languageTitles} current={language} onChoice={setLanguage} />
        <p>
          Set <code>GATEWAY_KEY</code> to an API key first.
        </p>
        <Snippet text={requestCode(request, dialect, language)} what="code" />
      </div>
    </Dialog>
  )
}

/** Returns a first request to this gateway. */
export const helloRequest = (model = 'gateway-ai'): CodeRequest => ({
  origin: location.origin,
  model,
  headers: {},
  messages: [{ role: 'user', content: 'Say hello in one sentence.' }],
  parameters: {},
})

const titles = { environment: 'Environment', ...languageTitles } as const
type SnippetKind = keyof typeof titles
const isLanguage = (kind: SnippetKind): kind is CodeLanguage => codeLanguages.some(language => language === kind)

/** Code for a program that uses this key. The gateway has only the hash of the key, so its secret part is a placeholder. */
export function KeySnippets({ of: { prefix, models } }: { readonly of: Pick<ShownKey, 'prefix' | 'models'> }) {
  const [kind, setKind] = useState<SnippetKind>('environment')
  const request = helloRequest(models?.find(model => !model.endsWith('*')))
  const { origin } = request
  const environment = [
    `export GATEWAY_KEY='${prefix.replace('…', '')}_YOUR_SECRET'`,
    `export OPENAI_BASE_URL='${origin}/v1'`,
    'export OPENAI_API_KEY="$GATEWAY_KEY"',
    `export ANTHROPIC_BASE_URL='${origin}'`,
    'export ANTHROPIC_AUTH_TOKEN="$GATEWAY_KEY"',
  ].join('\n')
  return (
    <Card
      title="Use this key"
      about="The key was shown once, when it was created. Replace YOUR_SECRET by its secret part. The programs read GATEWAY_KEY."
      actions={<Tabs label="Language" tabs={titles} current={kind} onChoice={setKind} />}
    >
      <Snippet text={isLanguage(kind) ? requestCode(request, 'chat_completions', kind) : environment} what="code" />
    </Card>
  )
}

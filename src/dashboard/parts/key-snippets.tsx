import { useState } from 'preact/hooks'
import type { ShownKey } from '../../console/keys/schemas.ts'
import { type CodeLanguage, codeLanguages, requestCode } from '../state/request-code.ts'
import { Snippet } from './copy.tsx'
import { Card } from './page.tsx'
import { Tabs } from './tabs.tsx'

const titles = { environment: 'Environment', curl: 'curl', python: 'Python', typescript: 'TypeScript' } as const
type SnippetKind = keyof typeof titles
const isLanguage = (kind: SnippetKind): kind is CodeLanguage => codeLanguages.some(one => one === kind)

/** Code for a program that uses this key. The gateway has only the hash of the key, so its secret part is a placeholder. */
export function KeySnippets({ of: { prefix, models } }: { readonly of: Pick<ShownKey, 'prefix' | 'models'> }) {
  const [kind, setKind] = useState<SnippetKind>('environment')
  const { origin } = location
  const request = {
    origin,
    model: models?.find(model => !model.endsWith('*')) ?? 'gateway-ai',
    headers: {},
    messages: [{ role: 'user' as const, content: 'Say hello in one sentence.' }],
    parameters: {},
  }
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
      actions={
        <Tabs
          label="Language"
          tabs={(Object.keys(titles) as SnippetKind[]).map(key => ({ key, title: titles[key] }))}
          current={kind}
          onChoice={setKind}
        />
      }
    >
      <Snippet text={isLanguage(kind) ? requestCode(request, 'chat_completions', kind) : environment} what="code" />
    </Card>
  )
}

import { useState } from 'preact/hooks'
import { type CodeDialect, type CodeRequest, codeDialects } from '../state/code-body.ts'
import { type CodeLanguage, codeLanguages, requestCode } from '../state/request-code.ts'
import { Snippet } from './copy.tsx'
import { Dialog } from './dialog.tsx'
import { Tabs } from './tabs.tsx'

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
        <Tabs
          label="Dialect"
          tabs={codeDialects.map(key => ({ key, title: dialectTitles[key] }))}
          current={dialect}
          onChoice={setDialect}
        />
        <Tabs
          label="Language"
          tabs={codeLanguages.map(key => ({ key, title: languageTitles[key] }))}
          current={language}
          onChoice={setLanguage}
        />
        <p>
          Set <code>GATEWAY_KEY</code> to an API key first.
        </p>
        <Snippet text={requestCode(request, dialect, language)} what="code" />
      </div>
    </Dialog>
  )
}

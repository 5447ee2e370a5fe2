import { useRef, useState } from 'preact/hooks'
import { type Attachment, draft } from '../state/playground.ts'
import { Button } from './button.tsx'
import { Icon } from './icon.tsx'
import { Notice } from './notice.tsx'

type ComposerProps = {
  readonly isAnswering: boolean
  readonly onAsk: (question: string, images: readonly Attachment[]) => Promise<void>
  readonly onStop: () => void
}

const mostImages = 4
/** As a request body: four of them stay below the gateway's default limit. */
const mostImageBytes = 2_000_000

/** The prompt with its images. */
export function Composer({ isAnswering, onAsk, onStop }: ComposerProps) {
  const text = draft.value
  const [images, setImages] = useState<readonly Attachment[]>([])
  const [rejected, setRejected] = useState('')
  const field = useRef<HTMLTextAreaElement>(null)
  const send = () => {
    const question = text.trim()
    if (question === '' || isAnswering) return
    draft.value = ''
    setImages([])
    void onAsk(question, images)
    field.current?.focus()
  }
  const attach = async (files: readonly File[]) => {
    const fitting = files.filter(({ size }) => size <= mostImageBytes).slice(0, mostImages - images.length)
    setRejected(fitting.length < files.length ? 'At most 4 images of 2 MB each.' : '')
    const added = await Promise.all(fitting.map(async file => ({ name: file.name, url: await readDataUrl(file) })))
    setImages(now => [...now, ...added])
  }
  return (
    <form
      class="composer"
      onSubmit={event => {
        event.preventDefault()
        send()
      }}
    >
      {(images.length > 0 || rejected !== '') && (
        <div class="attachments">
          {images.map(({ name }, index) => (
            <Button
              key={index}
              look="small"
              aria-label={`Remove image ${name}`}
              onClick={() => setImages(now => now.filter((_, at) => at !== index))}
            >
              {name} <Icon name="close" size={13} />
            </Button>
          ))}
          {rejected !== '' && <Notice tone="warn">{rejected}</Notice>}
        </div>
      )}
      <textarea
        ref={field}
        aria-label="Your message"
        placeholder="Your message"
        rows={2}
        value={text}
        onInput={event => {
          draft.value = event.currentTarget.value
        }}
        onKeyDown={event => {
          // While text is being composed, Enter belongs to the input method.
          if (event.key === 'Enter' && !event.shiftKey && !event.isComposing) {
            event.preventDefault()
            send()
          }
        }}
      />
      <label class="button plain square attach">
        <Icon name="image" />
        <input
          type="file"
          class="unseen"
          aria-label="Attach images"
          accept="image/png,image/jpeg,image/webp,image/gif"
          multiple
          onChange={event => {
            const input = event.currentTarget
            void attach([...(input.files ?? [])])
            input.value = ''
          }}
        />
      </label>
      {isAnswering ? (
        <Button onClick={onStop}>
          <Icon name="stop" size={16} /> Stop
        </Button>
      ) : (
        <Button type="submit" look="primary" disabled={text.trim() === ''}>
          <Icon name="send" size={16} /> Send
        </Button>
      )}
    </form>
  )
}

function readDataUrl(file: File): Promise<string> {
  return new Promise((resolve, reject) => {
    const reader = new FileReader()
    reader.addEventListener('load', () => resolve(String(reader.result)))
    reader.addEventListener('error', () => reject(reader.error))
    reader.readAsDataURL(file)
  })
}

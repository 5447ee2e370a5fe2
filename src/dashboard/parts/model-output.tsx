/** Shows a model's output as plain text; only fenced code is formatted. */
export function ModelOutput({ text }: { readonly text: string }) {
  return (
    <>
      {text.split(/^```/m).map((part, index) => {
        if (index % 2 === 0) {
          const trimmed = part.trim()
          return trimmed === '' ? null : <p key={index}>{trimmed}</p>
        }
        return (
          // biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls must be reachable by keyboard
          <pre key={index} tabIndex={0}>
            {part.replace(/^[\w+#.-]*\n/, '').trimEnd()}
          </pre>
        )
      })}
    </>
  )
}

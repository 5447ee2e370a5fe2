/** Returns the text of a response, up to the read in which it exceeds `maximumCharacters`. Rejects if the body breaks. */
export async function readBodyText({ body }: Pick<Response, 'body'>, maximumCharacters: number): Promise<string> {
  const decoder = new TextDecoder()
  let text = ''
  for await (const piece of body ?? []) {
    text += decoder.decode(piece, { stream: true })
    if (text.length > maximumCharacters) break
  }
  return text
}

/** Text that comes in pieces, cut anywhere: within a surrogate pair too. */
export type Channel = {
  /** Half a pair that a piece ended with: its other half comes with the next piece. */
  half: string
}

/** What stands for a half whose other half never came. */
export const replacement = '\ufffd'

/** The piece without lone surrogates; '' where all of it has to wait. */
export function mend(channel: Channel, piece: string): string {
  let text = piece
  if (channel.half !== '') {
    text = channel.half + piece
    channel.half = ''
  }
  if ((text.charCodeAt(text.length - 1) & 0xfc00) === 0xd800) {
    channel.half = text.slice(-1)
    text = text.slice(0, -1)
  }
  return text.isWellFormed() ? text : text.toWellFormed()
}

import type { LeftOutCode } from '../../core/chat/web-sources.ts'

/** Why a page is omitted. The message must not reach the client, since it may reveal what exists at an address. */
export class PageFailure extends Error {
  readonly code: LeftOutCode
  constructor(code: LeftOutCode, message: string) {
    super(message)
    this.name = 'PageFailure'
    this.code = code
  }
}

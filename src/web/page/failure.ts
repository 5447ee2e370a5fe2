import type { LeftOutCode } from '../../core/chat/web-sources.ts'

/** Why a page is left out. The message is for nobody outside: it may say what stands at an address. */
export class PageFailure extends Error {
  readonly code: LeftOutCode
  constructor(code: LeftOutCode, message: string) {
    super(message)
    this.name = 'PageFailure'
    this.code = code
  }
}

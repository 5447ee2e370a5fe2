/**
 * Extracts a page's text as a reader sees it: without hidden text, navigation and scripts, one line per block. One pass
 * over the tags that only stores open elements, so the time is linear in the page.
 */
import { Parser } from 'htmlparser2'
import { type Behind, createHiddenTextFilter } from './hidden-text.ts'

export type ReadText = { readonly title: string; readonly text: string }

/** No real page is deeper, and closing a tag takes time linear in the open elements. */
const maximumDepth = 512
/** A shorter main part is considered a teaser, and the whole page is used. */
const leastMainCharacters = 200

/** Extracts text from HTML (or XML). Throws if it is nested too deeply. */
export function readHtml(html: string): ReadText {
  const hiding = createHiddenTextFilter()
  const open: Place[] = [{ name: '', isHidden: false, behind: 'canvas', isTitle: false, region: 'page' }]
  const blocks: Block[] = []
  let block: Block | null = null
  let title = ''
  let style = ''

  const endBlock = () => {
    block = null
  }
  const add = (text: string, place: Place) => {
    if (block === null) {
      block = { text: '', region: place.region }
      blocks.push(block)
    }
    block.text += text
  }

  const parser = new Parser({
    onopentag(name, attributes) {
      const around = open.at(-1)
      if (around === undefined || open.length > maximumDepth) throw new Error('the page is nested too deeply')
      if (name === 'link' && /stylesheet/i.test(attributes.rel ?? '')) hiding.missSheet()
      const { isHidden, behind } = hiding.look(name, attributes, around.behind)
      const place = {
        name,
        isHidden: around.isHidden || isHidden || silent.has(name),
        behind,
        isTitle: name === 'title' && title === '' && titled.has(around.name),
        ...getRegion(name, attributes, around),
      }
      open.push(place)
      if (breaking.has(name)) endBlock()
      if (name === 'li' && !place.isHidden) add('- ', place)
      if (cells.has(name) && !place.isHidden && block !== null) add('\t', place)
    },
    ontext(text) {
      const place = open.at(-1)
      if (place === undefined) return
      if (place.isTitle) title += text
      else if (place.name === 'style') style += text
      else if (!place.isHidden) add(place.isPreformatted ? text : text.replace(blanks, ' '), place)
    },
    onclosetag(name) {
      open.pop()
      if (breaking.has(name)) endBlock()
      if (name !== 'style') return
      hiding.learn(style)
      style = ''
    },
  })
  parser.write(html)
  parser.end()
  return { title: title.replace(blanks, ' ').trim(), text: joined(blocks) }
}

type Region = 'page' | 'main' | 'furniture'
type Place = {
  readonly name: string
  readonly isHidden: boolean
  readonly behind: Behind
  readonly isTitle: boolean
  readonly region: Region
  readonly isPreformatted?: boolean
}
type Block = { text: string; readonly region: Region }

const blanks = /[\s\u00a0]+/g

/** Elements that are never shown as text. */
const silent = new Set(
  'script style noscript template iframe object embed svg math canvas audio video select option datalist button textarea input dialog head title'.split(
    ' ',
  ),
)
const breaking = new Set(
  'address article aside blockquote body br caption dd details div dl dt fieldset figcaption figure footer form h1 h2 h3 h4 h5 h6 header hr html li main nav ol p pre section summary table tbody tfoot thead tr ul title'.split(
    ' ',
  ),
)
/** Elsewhere a title belongs to an image. */
const titled = new Set(['', 'html', 'head'])
const cells = new Set(['td', 'th'])
const furniture = new Set(['nav', 'footer', 'aside', 'menu'])
const furnitureRoles = new Set(['navigation', 'banner', 'contentinfo', 'complementary', 'search', 'menu', 'menubar'])

function getRegion(name: string, { role = '' }: Readonly<Record<string, string>>, { region, isPreformatted }: Place) {
  const kept = name === 'pre' || isPreformatted === true ? { isPreformatted: true } : {}
  if (furniture.has(name) || furnitureRoles.has(role)) return { region: 'furniture' as const, ...kept }
  const opensMain = name === 'main' || name === 'article' || role === 'main'
  return { region: opensMain && region === 'page' ? ('main' as const) : region, ...kept }
}

/** Returns the main part if it is long enough, else everything but navigation, else everything. */
function joined(blocks: readonly Block[]): string {
  const getText = (regions: readonly Region[]) =>
    blocks
      .filter(({ region }) => regions.includes(region))
      .map(({ text }) => text.trim())
      .filter(text => text !== '' && text !== '-')
      .join('\n')
  const main = getText(['main'])
  if (main.length >= leastMainCharacters) return main
  return getText(['page', 'main']) || getText(['page', 'main', 'furniture'])
}

/** Difficulty on the project's own pairs, written after training and not part of it. */
import { describe, expect, test } from 'bun:test'
import { defaultLevelShares, getLevel } from '../../../src/models/capability-levels.ts'
import { openPromptAnalyzer } from '../../../src/text/readers.ts'

const readMessages = openPromptAnalyzer().read
const read = (text: string) => readMessages([{ role: 'user', content: [{ type: 'text', text }], name: null }])
const getGain = (text: string) => read(text).strongGain
const level = (text: string) => getLevel(getGain(text), defaultLevelShares)

type Pair = readonly [easy: string, hard: string]
const pairs: Readonly<Record<string, readonly Pair[]>> = {
  coding: [
    ['how do I split a string by commas in Go', 'Write a register allocator using graph coloring with spilling'],
    [
      'I am preparing a tiny demo for the interns who arrive on Thursday and would like a function that adds two integers, in TypeScript please, nothing more than that',
      'Make this cache thread-safe without a global lock',
    ],
    ['print the last element of a list', 'Our event loop stalls for 300 ms every few minutes; find out why and fix it'],
  ],
  systems: [
    [
      'what is the default port of MySQL',
      'Design a feed service for 200 million users with strict ordering per author',
    ],
    [
      'Our wiki calls the same thing node, host and machine, and the new colleague is confused by it. What is the plural of proxy? She asked me at lunch and I had no idea',
      'Consensus across five regions with one unreliable link',
    ],
  ],
  data: [
    [
      'how to add a column to a table in sqlite',
      'Reconcile two ledgers that disagree on 0.3 % of 80 million rows and explain each cause',
    ],
    [
      'sum these numbers: 4, 18, 23',
      'Rewrite this correlated subquery so that it scales linearly, and prove both return the same',
    ],
  ],
  mathematics: [
    ['what is 9 squared', 'Show that the harmonic series minus the logarithm converges'],
    [
      'Little Tim is in second grade, loves football and does not like sums. He must add 14 and 9 for tomorrow and I am cooking. What is the answer?',
      'Prove the Banach fixed-point theorem',
    ],
  ],
  science: [
    ['what colour is copper', 'Derive the dispersion relation of surface plasmons and discuss damping'],
    [
      'how many legs has a beetle',
      'Design a knockout study that separates developmental from acute effects, controls included',
    ],
  ],
  medicine: [
    [
      'what is a pediatrician',
      'Work up hyponatremia in a patient with cirrhosis and heart failure; what do you correct, how fast, and why',
    ],
    ['translate "headache" into Italian', 'Weak legs, high calcium and confusion: differential and next tests'],
  ],
  law: [
    [
      'what does pro bono mean',
      'Draft a limitation of liability that survives gross negligence claims in two jurisdictions',
    ],
    ['is a witness allowed to sit down', 'Argue for the appellant that the search was unlawful, then rebut it'],
  ],
  finance: [
    ['what is 8 percent of 250', 'Value a convertible bond with credit risk and a soft call, and test the assumptions'],
    [
      'what does a cashier do',
      'Explain why the merger arbitrage spread widened although the deal became more likely; quantify it',
    ],
  ],
  writing: [
    ['a rhyme for summer', 'Write a ghazal in strict form whose couplets tell one story only when read in reverse'],
    [
      'correct: he dont know',
      'Cut this 40-page report to five pages, keep every finding and resolve the contradictions between authors',
    ],
    [
      'translate "see you soon" into Dutch',
      'Translate this sonnet into French, keep the metre, the rhymes and the pun in the couplet',
    ],
  ],
  planning: [
    [
      'name three things to do on a rainy day',
      'Assign 60 volunteers to 14 shifts under these twelve rules and show which rule must bend',
    ],
    [
      'what should I write on a cake for a retirement',
      'Sequence a hospital move over one weekend, no ward closed for more than two hours, with fallbacks',
    ],
  ],
  other: [
    [
      'nenne drei Flüsse in Europa',
      'Entwirf ein Protokoll für verteilte Sperren, das Netzteilungen übersteht, und beweise seine Sicherheit',
    ],
    [
      'wie spät ist es in Tokio, wenn es in Berlin 9 Uhr ist',
      'Analysiere, warum der Speicherverbrauch des Dienstes wächst, und begründe die Korrektur',
    ],
    ['donne-moi un synonyme de content', 'Démontre le théorème du point fixe de Banach et discute ses hypothèses'],
    ['cómo se dice gato en inglés', 'Diseña un sistema de reservas concurrente y demuestra que no hay sobreventa'],
    ['назови столицу Австрии', 'Докажи теорему Банаха о неподвижной точке'],
    ['猫用英语怎么说', '设计一个支持跨区域容灾的分布式锁服务，并证明其安全性'],
    ['「ありがとう」を英語に訳して', '分散ロックの設計を提案し、ネットワーク分断時の安全性を証明して'],
    ['diga o nome de três frutas', 'Demonstre que a série converge e generalize o argumento'],
  ],
}

describe('strongGain', () => {
  test('ranks the demanding prompt above the routine one in 90% of pairs, and in most pairs of each field', () => {
    const all = Object.entries(pairs).flatMap(([field, of]) => of.map(pair => ({ field, pair })))
    const wrong = all.filter(({ pair: [easy, hard] }) => getGain(hard) <= getGain(easy))
    expect(wrong.length, JSON.stringify(wrong)).toBeLessThanOrEqual(all.length / 10)
    for (const [field, of] of Object.entries(pairs))
      expect(of.filter(([easy, hard]) => getGain(hard) > getGain(easy)).length, field).toBeGreaterThanOrEqual(
        of.length / 2,
      )
  })

  test('ranks design and proof above lists and rewriting, whatever their length', () => {
    expect(getGain('Design a fault-tolerant scheduler')).toBeGreaterThan(
      getGain(
        'Hi! I would like you to list five colours in alphabetical order, it is for my little cousin who draws a lot',
      ),
    )
    expect(getGain('Beweise, dass es unendlich viele Primzahlen gibt')).toBeGreaterThan(
      getGain('Übersetze „guten Tag“ ins Englische'),
    )
  })

  test.each([
    'write a python CSV parser',
    'Write a python function that parses a csv file',
    'write a poem',
    'list 3 fruits',
    'hi',
    'Good morning! How are you?',
    'Translate this sentence into Spanish: the train is late',
    'What is the capital of Norway?',
    'Write a haiku about spring',
    'Fix the spelling: I recieved it',
    'Schreibe ein Gedicht',
    'Écris un poème',
    '写一首诗',
  ])('stays below the strong level for %j', text => {
    expect(level(text), `${getGain(text)}`).not.toBe('strong')
  })

  test.each([
    'Architect a multi-tenant billing system',
    'Write a distributed key-value store in Rust',
    'Explain general relativity with tensor calculus',
    'Prove that there are infinitely many primes',
    'Debug this deadlock between two goroutines',
    'Plan a week for six people with these constraints: two vegans, one car, a budget of 300 and no evening alone',
    'Entwirf eine mandantenfähige Architektur',
    'Démontre que la suite converge',
    '证明素数有无穷多个',
  ])('stays above the light level for %j', text => {
    expect(level(text), `${getGain(text)}`).not.toBe('light')
  })
})

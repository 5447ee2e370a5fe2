/** A training prompt with the expected gain of a strong model: 0 = none, 1 = large. */
export type Anchor = { readonly prompt: string; readonly gain: number }

/**
 * Returns prompts of everyday kinds that no labeled set has: polite phrases and small favors, which any model can do,
 * and work of many steps, where models differ. Judged by hand; they keep routing sensible for prompts other than exams.
 */
export function anchors(): Anchor[] {
  return [
    ...easy.map(prompt => ({ prompt, gain: 0 })),
    ...topics.flatMap((topic, index) => [
      { prompt: filled(easyForms, index, topic), gain: 0.1 },
      { prompt: filled(middleForms, index, topic), gain: 0.4 },
    ]),
    ...trades.flatMap((trade, index) => [
      { prompt: filled(hardForms, index, trade), gain: 0.9 },
      { prompt: filled(hardForms, index + 3, trade), gain: 0.9 },
    ]),
    ...hard.map(prompt => ({ prompt, gain: 1 })),
  ]
}

function filled(forms: readonly string[], index: number, what: string): string {
  return (forms[index % forms.length] ?? '').replace('…', what)
}

const easy = [
  'Hi',
  'Hello there, how are you today?',
  'Good morning!',
  'thanks',
  'Thank you so much, that was very helpful',
  'ok great',
  'yes',
  'no, that is all',
  'What can you do?',
  'Who are you?',
  'Tell me a joke',
  'What is the capital of Portugal?',
  'Who painted the Mona Lisa?',
  'How do you say good night in Italian?',
  'What day comes after Tuesday?',
  'What is 12 plus 7?',
  'Give me a synonym for happy',
  'Fix the spelling: I recieved teh letter yesterday',
  'Write a short birthday wish for my sister',
  'Write a thank you note to a colleague',
  'Suggest a name for a grey cat',
  'Turn this into a question: You are coming tonight',
  'Translate "where is the station" to German',
  'Hallo, wie geht es dir?',
  'Danke schön',
  'Hola, ¿cómo estás?',
  'Merci beaucoup',
  'Schreibe einen kurzen Geburtstagsgruß an meine Tante',
  '¿Cuál es la capital de Francia?',
  'Quelle est la capitale de la Belgique ?',
]

const topics = ['coffee', 'gardening', 'a rainy day', 'bicycles', 'the sea', 'bread', 'old trains', 'a small town']

const easyForms = [
  'Write one sentence about …',
  'What is …?',
  'Give me three words that go with …',
  'Write a haiku about …',
]

const middleForms = [
  'Write a blog post of 400 words about … for beginners',
  'List the advantages and disadvantages of …',
  'Summarize what one should know about … in five bullet points',
]

const trades = [
  'a distributed key-value store',
  'a scheduler for hospital shifts',
  'a parser for nested arithmetic expressions',
  'a matching engine for a stock exchange',
  'an inventory with concurrent reservations',
  'a route planner with time windows',
]

const hardForms = [
  'Implement … in Python, handle every edge case, explain the time complexity and write tests that would fail for a naive version',
  'Find the bug in the design of … when two clients write at the same time, and prove that your fix is correct',
  'Design … step by step: derive the invariants, compare three algorithms and justify the choice with numbers',
  'Our implementation of … deadlocks under load. Reason about all interleavings, then refactor the code to remove the race condition',
]

const hard = [
  'Prove that there are infinitely many primes of the form 4k + 3',
  'Let f be a continuous function on [0,1] with f(0) = f(1). Prove that there is an x with f(x) = f(x + 1/2)',
  'Find all integers n such that n^2 + n + 41 is divisible by 43, and prove that there are no others',
  'Show that every finite integral domain is a field, then give a counterexample for the infinite case',
  'Evaluate the integral of x^2 e^{-x} \\sin(x) from 0 to infinity and justify each step',
  'Three people each say two statements, exactly one of which is true. Work out who is lying, eliminating every case',
  'Write a function that returns the k-th smallest element of two sorted arrays in O(log n), without merging them',
  'Given this stack trace and the code below, find the memory leak and explain why the garbage collector cannot free it',
  'Extract all parties, dates and obligations from the contract below as JSON, resolve the cross references and flag contradictions',
  'A loan of 240000 at 4.2 % is paid monthly over 25 years with an extra payment of 10000 after year 5. How much interest is saved in total?',
  'Compare the holdings of the two judgments, apply both to the facts below and argue which one the court would follow',
  'Derive the equations of motion of a double pendulum from its Lagrangian and linearize them for small angles',
  'Beweise, dass die Quadratwurzel aus 3 irrational ist, und verallgemeinere das Ergebnis',
  'Implementa un árbol rojo-negro en Java y demuestra que la inserción conserva sus invariantes',
]

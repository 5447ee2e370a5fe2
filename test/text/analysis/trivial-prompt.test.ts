import { describe, expect, test } from 'bun:test'
import { queryTypes } from '../../../src/core/chat/chat.ts'
import { enhancePrompt } from '../../../src/text/enhancement/enhance.ts'
import { openPromptAnalyzer } from '../../../src/text/readers.ts'

const read = openPromptAnalyzer().read
const analyzeText = (text: string) => read([{ role: 'user', content: [{ type: 'text', text }], name: null }])

/** Returns each pattern filled with each of its words. */
const filled = (pattern: string, words: readonly string[]) => words.map(word => pattern.replace('_', word))

const small: Readonly<Record<string, readonly string[]>> = {
  en: [
    ...[
      'Hello!',
      'hi there',
      'Hey, how are you?',
      'Good morning everyone',
      'How are you doing today?',
      'Nice to meet you!',
    ],
    ...[
      'Thanks!',
      'Thank you so much for your help',
      'thanks a lot, bye',
      'OK',
      'Yes please',
      'no thanks',
      'see you tomorrow',
    ],
    ...filled('What is the capital of _?', ['Peru', 'Mongolia', 'New Zealand', 'Chad', 'Norway']),
    ...filled('Who _?', [
      'wrote Moby-Dick',
      'invented the telephone',
      'painted Guernica',
      'was the first woman in space',
    ]),
    ...filled('When did _?', ['the Berlin Wall fall', 'Rome become a republic', 'the Titanic sink']),
    ...filled('Where is _?', ['Lake Titicaca', 'the Louvre', 'Timbuktu']),
    ...filled('How many _?', ['legs does a spider have', 'moons does Mars have', 'keys are on a piano']),
    ...filled('How _?', ['tall is Mont Blanc', 'old is the universe', 'far is the moon', 'long is the Nile']),
    ...filled('Which _?', ['planet is closest to the sun', 'country has the most islands', 'ocean is the deepest']),
    ...filled('What _?', [
      'year did the Second World War end',
      'is the boiling point of ethanol',
      'is the chemical symbol for gold',
      'color is chlorophyll',
      'currency is used in Japan',
    ]),
    ...filled('Is _?', [
      'a whale a mammal',
      'it true that bats are blind',
      'water wet',
      '97 a prime number',
      'Pluto a planet',
    ]),
    ...filled('Can _?', ['penguins fly', 'dogs eat grapes', 'I take the bus without a ticket', 'glass be recycled']),
    ...[
      'Does sound travel in a vacuum?',
      'Do cats dream?',
      'Did Napoleon win at Waterloo?',
      'Are tomatoes fruits?',
      'Has anyone been to Mars?',
    ],
    ...[
      'What is 2+2?',
      'What is 3 + 4?',
      'What is 10% of 50?',
      'What is 12 divided by 4?',
      '(17 - 5) * 3 = ?',
      'convert 5 miles to km',
      'What is 30 °C in Fahrenheit?',
      'What port does SSH use?',
      'Is 0.1 + 0.2 equal to 0.3 in JavaScript?',
      'Say hello in one sentence.',
      'Give me a number between 1 and 10',
    ],
    ...[
      'Was Cleopatra Egyptian?',
      'Should I water a cactus every day?',
      'Will it float?',
      'Could a human live on Venus?',
      'are there bears in Spain',
    ],
  ],
  es: [
    ...['¡Hola!', 'Buenos días', 'Muchas gracias', 'gracias por todo', 'hola, ¿qué tal?'],
    ...filled('¿Cuál es la capital de _?', ['Perú', 'Mongolia', 'Noruega']),
    ...[
      '¿Quién escribió el Quijote?',
      '¿Cuándo cayó el Muro de Berlín?',
      '¿Dónde está el lago Titicaca?',
      '¿Cuántas patas tiene una araña?',
    ],
    ...[
      '¿En qué año terminó la guerra?',
      '¿Es la ballena un mamífero?',
      '¿Pueden volar los pingüinos?',
      '¿Los gatos sueñan?',
      '¿Hay osos en España?',
    ],
  ],
  fr: [
    ...['Bonjour !', 'Merci beaucoup', 'Salut', 'bonsoir à tous'],
    ...[
      'Quelle est la capitale du Pérou ?',
      'Qui a écrit Les Misérables ?',
      'Quand le mur de Berlin est-il tombé ?',
      'Où se trouve le lac Titicaca ?',
    ],
    ...[
      'Combien de pattes a une araignée ?',
      'En quelle année la guerre a-t-elle fini ?',
      'Est-ce que les pingouins volent ?',
      'La baleine est-elle un mammifère ?',
      'Les chats rêvent-ils ?',
    ],
  ],
  de: [
    ...['Hallo!', 'Guten Morgen', 'Vielen Dank', 'danke für die Hilfe'],
    ...[
      'Was ist die Hauptstadt von Peru?',
      'Wer schrieb den Faust?',
      'Wann fiel die Berliner Mauer?',
      'Wo liegt der Titicacasee?',
      'Wie hoch ist der Mont Blanc?',
    ],
    ...[
      'Wie viele Beine hat eine Spinne?',
      'Ist der Wal ein Säugetier?',
      'Können Pinguine fliegen?',
      'Träumen Katzen?',
      'Gibt es Bären in Spanien?',
    ],
  ],
  pt: [
    ...['Olá!', 'Bom dia', 'Muito obrigado', 'obrigada pela ajuda'],
    ...[
      'Qual é a capital do Peru?',
      'Quem escreveu Os Lusíadas?',
      'Quando caiu o Muro de Berlim?',
      'Onde fica o lago Titicaca?',
    ],
    ...['Quantas patas tem uma aranha?', 'A baleia é um mamífero?', 'Os pinguins voam?', 'Os gatos sonham?'],
  ],
  it: [
    ...['Ciao!', 'Buongiorno', 'Grazie mille', 'grazie per l’aiuto'],
    ...[
      'Qual è la capitale del Perù?',
      'Chi ha scritto la Divina Commedia?',
      'Quando è caduto il muro di Berlino?',
      'Dove si trova il lago Titicaca?',
    ],
    ...['Quante zampe ha un ragno?', 'La balena è un mammifero?', 'I pinguini volano?', 'I gatti sognano?'],
  ],
  nl: [
    ...['Hoi!', 'Goedemorgen', 'Bedankt', 'dank je wel'],
    ...[
      'Wat is de hoofdstad van Peru?',
      'Wie schreef Max Havelaar?',
      'Wanneer viel de Berlijnse Muur?',
      'Waar ligt het Titicacameer?',
      'Hoeveel poten heeft een spin?',
    ],
    ...['Is een walvis een zoogdier?', 'Kunnen pinguïns vliegen?', 'Dromen katten?'],
  ],
  pl: [
    ...['Cześć!', 'Dzień dobry', 'Dziękuję bardzo'],
    ...[
      'Jaka jest stolica Peru?',
      'Kto napisał Lalkę?',
      'Kiedy upadł mur berliński?',
      'Gdzie leży jezioro Titicaca?',
      'Ile nóg ma pająk?',
    ],
    ...['Czy wieloryb jest ssakiem?', 'Czy pingwiny latają?', 'Czy koty śnią?'],
  ],
  tr: [
    ...['Merhaba!', 'Günaydın', 'Teşekkür ederim'],
    ...[
      'Peru’nun başkenti neresi?',
      'Bu romanı kim yazdı?',
      'Berlin Duvarı ne zaman yıkıldı?',
      'Titicaca Gölü nerede?',
      'Örümceğin kaç bacağı var?',
    ],
    ...['Balina memeli mi?', 'Penguenler uçar mı?', 'Kediler rüya görür mü?'],
  ],
  ru: [
    ...['Привет!', 'Доброе утро', 'Большое спасибо', 'спасибо за помощь'],
    ...[
      'Какая столица Перу?',
      'Кто написал «Войну и мир»?',
      'Когда пала Берлинская стена?',
      'Где находится озеро Титикака?',
      'Сколько ног у паука?',
    ],
    ...[
      'В каком году закончилась война?',
      'Кит — млекопитающее?',
      'Умеют ли пингвины летать?',
      'Правда ли, что кошки видят сны?',
    ],
  ],
  uk: [
    ...['Привіт!', 'Доброго ранку', 'Дякую за допомогу'],
    ...[
      'Яка столиця Перу?',
      'Хто написав «Кобзар»?',
      'Коли впав Берлінський мур?',
      'Де лежить озеро Тітікака?',
      'Скільки ніг має павук?',
    ],
    ...['Чи вміють пінгвіни літати?', 'Чи бачать коти сни?', 'Кит є ссавцем?'],
  ],
  zh: [
    ...['你好！', '谢谢你的帮助', '早上好', '再见'],
    ...['秘鲁的首都是哪里？', '《红楼梦》是谁写的？', '柏林墙是哪一年倒塌的？', '蜘蛛有几条腿？', '月球离地球多远？'],
    ...['鲸鱼是哺乳动物吗？', '企鹅会飞吗', '猫会做梦吗？'],
  ],
  ja: [
    ...['こんにちは！', 'ありがとうございます', 'おはようございます', 'さようなら'],
    ...[
      'ペルーの首都はどこですか？',
      '源氏物語を書いたのは誰ですか',
      'ベルリンの壁はいつ崩壊しましたか？',
      '蜘蛛の足は何本ですか？',
    ],
    ...['クジラは哺乳類ですか？', 'ペンギンは飛べますか', '猫は夢を見ますか？'],
  ],
  ko: [
    ...['안녕하세요!', '감사합니다', '도와주셔서 고맙습니다'],
    ...[
      '페루의 수도는 어디인가요?',
      '이 소설은 누가 썼나요?',
      '베를린 장벽은 언제 무너졌나요?',
      '거미 다리는 몇 개인가요?',
    ],
    ...['고래는 포유류인가요?', '펭귄은 날 수 있나요?', '고양이도 꿈을 꾸나요?'],
  ],
  ar: [
    ...['مرحبا!', 'صباح الخير', 'شكرا جزيلا'],
    ...[
      'ما هي عاصمة بيرو؟',
      'من كتب هذه الرواية؟',
      'متى سقط جدار برلين؟',
      'أين تقع بحيرة تيتيكاكا؟',
      'كم عدد أرجل العنكبوت؟',
    ],
    ...['هل الحوت من الثدييات؟', 'هل تطير البطاريق؟', 'هل تحلم القطط؟'],
  ],
  hi: [
    ...['नमस्ते!', 'सुप्रभात', 'बहुत धन्यवाद'],
    ...[
      'पेरू की राजधानी क्या है?',
      'यह उपन्यास किसने लिखा?',
      'बर्लिन की दीवार कब गिरी?',
      'टिटिकाका झील कहाँ है?',
      'मकड़ी के कितने पैर होते हैं?',
    ],
    ...['क्या व्हेल स्तनधारी है?', 'क्या पेंगुइन उड़ते हैं?', 'क्या बिल्लियाँ सपने देखती हैं?'],
  ],
}

/** Terse, and not trivial although they look it. */
const large: readonly (readonly [string, string])[] = [
  ['en', 'Hi, write a farewell poem for my colleague'],
  ['en', 'Can you write me a short story about a dragon?'],
  ['en', 'Is there a way to merge two branches without conflicts?'],
  ['en', 'Is a train or a plane better for a trip to Rome?'],
  ['en', 'Why do empires fall?'],
  ['en', 'convert 3 classes to functional components'],
  ['en', 'Generate a random number in a shell script'],
  ['en', 'What is 3x + 4 when x grows?'],
  ['en', 'How many apples are left when Tom gives each of his friends two?'],
  ['es', '¿Puedes escribir un poema sobre el mar?'],
  ['es', '¿Por qué cayó el Imperio romano?'],
  ['fr', 'Peux-tu écrire un poème sur la mer ?'],
  ['de', 'Kannst du ein Gedicht über das Meer schreiben?'],
  ['de', 'Warum fiel das Römische Reich?'],
  ['pt', 'Você pode escrever um poema sobre o mar?'],
  ['it', 'Puoi scrivere una poesia sul mare?'],
  ['nl', 'Kun je een gedicht over de zee schrijven?'],
  ['pl', 'Czy możesz napisać wiersz o morzu?'],
  ['tr', 'Deniz hakkında bir şiir yazabilir misin?'],
  ['ru', 'Можешь написать стихотворение о море?'],
  ['uk', 'Можеш написати вірш про море?'],
  ['zh', '能帮我写一首关于大海的诗吗？'],
  ['ja', '海についての詩を書いてくれますか？'],
  ['ko', '바다에 대한 시를 써 줄 수 있나요?'],
  ['ar', 'هل يمكنك كتابة قصيدة عن البحر؟'],
  ['hi', 'क्या आप समुद्र पर एक कविता लिख सकते हैं?'],
]

const known = queryTypes.filter(type => type !== 'other')

describe('isTrivialPrompt', () => {
  test.each(Object.entries(small))(
    'returns true in %s for polite phrases, facts and yes/no questions',
    (language, prompts) => {
      const changed = prompts.filter(prompt => enhancePrompt(prompt, analyzeText(prompt)).changed)
      expect(changed).toEqual([])
      // For any assumed type.
      const asked = prompts.filter(prompt =>
        known.some(queryType => enhancePrompt(prompt, { queryType, language }).changed),
      )
      expect(asked).toEqual([])
    },
  )

  test.each(large)('returns false in %s for: %s', (language, prompt) => {
    expect(enhancePrompt(prompt, { queryType: 'creative', language }).changed).toBe(true)
  })

  test('has more than 200 test cases', () => {
    expect(Object.values(small).flat().length).toBeGreaterThanOrEqual(200)
  })
})

/**
 * Sentences of the project by query type, for types and languages with too few labeled rows. `(a|b)` is one of several,
 * `{name}` one of a list; a final `…` is followed by material.
 */

import { type QueryType, queryTypes } from '../core/chat/chat.ts'
import { hashOf } from '../text/analysis/features.ts'
import { seededRandom } from './folds.ts'

const lists: Readonly<Record<string, string>> = {
  lang: 'python|javascript|java|c++|c#|rust|go|php|typescript|bash|sql|kotlin|swift|R|ruby|matlab|powershell|scala|dart',
  tool: 'docker|kubernetes|react|django|flask|spring boot|nginx|postgres|mongodb|git|aws lambda|terraform|pandas|excel|vue|unity|wordpress|redis|laravel|next.js|android studio|linux|arduino|power bi|selenium',
  task: 'reads a csv file|sends an email|downloads images from a page|renames files in a folder|parses json|connects to a database|scrapes a website|validates a form|uploads a file|plots a chart|caches results|logs in a user|resizes images|reverses words|counts words in a text|shows a login page|streams a video|merges two excel sheets|encrypts a file|backs up a directory',
  do_code:
    'read a csv file|center a div|merge two branches|set an environment variable|connect to a database|add a column|filter a dataframe|parse a date|call an api|mock a function|handle errors|run tests in parallel|write a unit test|deploy an app|join two tables|use async await|sort a dictionary|create a virtual machine|open a port|add authentication|schedule a job|implement pagination',
  ui: 'todo app|landing page|calculator|login form|chat bot|snake game|dashboard|rest api|discord bot|chrome extension|shopping cart|navbar|table with sorting|weather widget|tic tac toe game|web scraper|2d platformer',
  error:
    'TypeError: undefined is not a function|NullPointerException|segmentation fault|KeyError|a 404 error|a CORS error|connection refused|ModuleNotFoundError|index out of range|a syntax error|exit code 1|permission denied|out of memory|an exception|"cannot find symbol"|a timeout|unexpected token',
  algo: 'binary search|quicksort|merge sort|dijkstra|a binary tree traversal|the knapsack problem|a linked list|a trie|depth first search|breadth first search|n queens|the sieve of eratosthenes|fibonacci|a* search|a hash table from scratch|levenshtein distance|a priority queue|topological sort|huffman coding|the tower of hanoi|the longest common subsequence|a red black tree|gradient descent from scratch|a sudoku solver',
  problem:
    'two numbers that add up to a target|the longest palindromic substring|the maximum subarray sum|the shortest path|all permutations|the k-th largest element|the number of islands|the minimum number of coins|the median of two sorted arrays|the first missing positive|duplicates|a cycle|the lowest common ancestor|prime numbers up to n',
  topic:
    'climate change|remote work|social media|artificial intelligence|electric cars|the roman empire|inflation|globalization|education|immigration|healthcare|space travel|renewable energy|democracy|advertising|urban planning|the french revolution|nuclear power|mental health|capitalism|automation|world war one|fast food|tourism|the housing market|genetic engineering|privacy|poverty|minimum wage',
  who: 'people|children|companies|students|cities|governments|small businesses|teenagers|employees|consumers|artists|farmers|teachers|scientists|countries',
  doc: 'email|letter|article|essay|blog post|report|speech|cover letter|product description|press release|linkedin post|job description|tweet|proposal|thank you note|newsletter|instagram caption|memo|abstract|resume summary|obituary|wedding speech|complaint|business proposal|user story|video script|introduction',
  to: 'my boss|a customer|my landlord|the team|my professor|a recruiter|parents|investors|a friend|the city council|a colleague',
  about:
    'a delayed delivery|our new product|a job offer|a day off|the benefits of yoga|a summer sale|rising rents|a broken heater|a charity run|my trip to japan|a new coffee shop|online safety|a book i read|the annual meeting|sustainable fashion',
  fic: 'story|short story|poem|song|haiku|limerick|fairy tale|dialogue|rap|scene|bedtime story|monologue|fan fiction|joke|riddle|screenplay|sonnet|ballad|satirical piece|parody',
  hero: 'a dragon|a lonely robot|a cat|two pirates|a time traveler|an old lighthouse keeper|the moon|a detective|a brave princess|aliens|a talking tree|a knight|a ghost|a vampire|a superhero|a wizard|an astronaut|a mermaid|autumn|lost love|the sea|rain|my grandmother',
  person:
    'a pirate|sherlock holmes|a medieval king|yoda|a grumpy old man|a superhero|gandalf|an alien|a vampire|batman|a talking dog|shakespeare|a 1920s gangster|darth vader|an evil ai',
  trip: 'a trip to lisbon|a 5-day trip to japan|a weekend in paris|a birthday party|a wedding for 80 guests|a road trip|a vacation in greece|a move to another city|a garden|a kitchen renovation|a product launch|a fundraiser|a school year|a conference|a family reunion|a camping weekend',
  train:
    'a marathon|weight loss|muscle gain|an exam|a half marathon|learning spanish|beginners at home|a vegan athlete|a software team|new hires|learning python|a triathlon|the next quarter',
  a: 'cats|iphone|react|python|bitcoin|electric cars|tea|gas|capitalism|solar power|netflix|mysql|a laptop|running|coffee|renting|wood|whales|football|aws|bachelor|yoga|latin|chess|weather|a bond',
  b: 'dogs|android|angular|java|gold|hybrids|coffee|electricity|socialism|wind power|disney plus|postgres|a desktop|cycling|green tea|buying|steel|dolphins|rugby|azure|master|pilates|greek|go|climate|a stock',
  thing:
    'black holes|photosynthesis|the stock market|inflation|vaccines|blockchain|a jet engine|dna|gravity|the immune system|insulin|sleep|rainbows|nuclear fusion|a mortgage|tides|the blockchain|tectonic plates|wifi|machine learning',
  advice:
    'sleep better|save money|clean a carpet|learn the guitar|lose weight|meet new people|make bread|grow tomatoes|fix a leaking tap|get a passport|stop snoring|train a puppy|ask for a raise|quit smoking|cook rice|remove a stain|invest in stocks|choose a laptop|write faster|open a bank account',
  fact: 'the capital of australia|the tallest mountain|the boiling point of water|the population of france|the speed of light|the meaning of "serendipity"|a meme|an ira|the biggest ocean|a black hole|the plot of hamlet|the best phone|the currency of japan|the best way to learn to swim|a quark|the author of dune|ramadan',
  items:
    'movies|books|songs|restaurants|games|podcasts|breakfast recipes|museums|hobbies|board games|tv series|places to visit in rome|gifts for a teacher|healthy snacks|programming languages|universities|dog breeds|exercises|anime|vegan recipes',
  num: '3|12|45|7|120|2.5|15%|250|1,000|64|0.75|18',
  unit: 'apples|dollars|km|hours|liters|students|marbles|eggs|miles|workers|pages|kg|tickets',
  formula:
    '3x + 7 = 22|x^2 - 5x + 6 = 0|2x - y = 4 and x + y = 5|f(x) = 4x^3 - 2x|y = 2x + 1|x^2 + y^2 = 25|5(x - 2) = 3x + 8||x - 3| < 5',
  material:
    'The quick team met on Monday and decided to move the launch|Sales rose in the north while costs stayed flat|I loved the room but the staff were rude and the food was cold|Researchers found that the new method works better on small samples|Dear Sir, I am writing to you because my order never came|The company was founded in 1998 and now has offices in five cities',
  snippet:
    'def run(x): return x[0] + 1|for (int i = 0; i <= n; i++) { sum += a[i]; }|const data = await fetch(url).then(r => r.json());|SELECT * FROM users u JOIN orders o ON u.id = o.user_id WHERE o.total > 10;|public static void main(String[] args) { System.out.println(x); }|<div class="box"><p>Hello</p></div>|import pandas as pd; df = pd.read_csv("a.csv"); df.head()|#include <stdio.h> int main() { printf("%d", x); return 0; }|if [ -f "$1" ]; then rm "$1"; fi',
}

const templates: Readonly<Record<QueryType, string>> = {
  code: `write (a|me a|some) {lang} (script|program|function|code|class) (that|to|which) {task}
    (write|create|give me|show me) {lang} code (that|to) {task}
    how (do i|can i|to|would you) {do_code} (in|with|using) ({lang}|{tool})
    (create|build|make|develop|code) a {ui} (in|with|using) ({lang}|{tool})
    (convert|port|translate|rewrite) this {lang} code to {lang} {snippet}
    (explain|what does|comment|document) this code (do|) {snippet}
    {snippet} (how can i make this faster|add comments|explain this|refactor this|make it shorter|rewrite it in {lang}|add a parameter for the path)
    (how to|how do i) (install|configure|set up|use|deploy) {tool} (on ubuntu|in production|locally|with {tool}|)
    write a (regex|query|dockerfile|unit test|makefile|shader|stored procedure|macro|cron job|config file) (for|that|to) {task}
    {tool} (example|tutorial|best practices|command to list everything|performance)
    (is there a way|what is the best way) to {do_code} in {lang}
    (refactor|optimize|improve|review|simplify) (this|my) {lang} (code|function|class|query) {snippet}
    (design|model) (a database schema|an api|a class hierarchy) for a {ui}
    what is (a decorator|a pointer|a closure|dependency injection|an interface|a promise|garbage collection) in {lang}
    schreibe (ein|mir ein) {lang} (skript|programm|funktion), (das|die) (eine datei liest|dateien umbenennt|ein formular prüft)
    wie (kann ich|installiere ich|konfiguriere ich) {tool} (auf ubuntu|im container|)
    écris (un script|une fonction|un programme) (en|avec) {lang} (pour lire un fichier|qui trie une liste|qui envoie un courriel)
    escribe (un script|una función|un programa) en {lang} (que lea un archivo|para enviar correos|que valide un formulario)
    escreva (um script|uma função|um programa) em {lang} (que leia um arquivo|para enviar e-mails)
    scrivi (uno script|una funzione|un programma) in {lang} (che legge un file|per inviare email)
    напиши (скрипт|программу|функцию|код) на {lang} (которая читает файл|для отправки писем|чтобы скачать картинки)
    как (настроить|установить|подключить) {tool}
    用{lang}写一个(脚本|程序|函数|爬虫)(读取文件|发送邮件|处理数据)
    如何(安装|配置|使用){tool}
    {lang}で(ファイルを読む|メールを送る)(プログラム|コード|スクリプト)を書いて
    {lang}로 (파일을 읽는|메일을 보내는) (코드|프로그램)를 작성해줘`,
  debugging: `(why do i get|i get|i am getting|getting|i keep getting) {error} (when i run this|when i start the server|in {lang}|with {tool}|after the update)
    (fix|debug|find the bug in|correct) (this|my|the following) (code|function|script|{lang} code|query) {snippet}
    {snippet} (gives|throws|returns|fails with) {error}
    (my|the|this) ({lang}|{tool}) (code|script|app|container|build|test|query|component) (is not working|does not work|doesn't compile|crashes|hangs|keeps failing|returns nothing|won't start)
    what is wrong with (this|my) (code|query|function|regex|config) {snippet}
    (why|how come) (does|is) my (loop|function|variable|button|request|page|query) (not working|return undefined|never end|always empty|null|slow|not updating)
    Traceback (most recent call last): File "main.py", line {num}, in run {error}
    error: {error} at line {num} (how to solve this|how do i fix it|any idea|please help|)
    {tool} (build|deployment|container|pod) (failed|keeps restarting|crashes) with {error}
    (can you|help me) (identify|find|spot) (any|the) (bug|bugs|error|mistake) in (this|my) (code|function) {snippet}
    (mein|dieser) (code|skript|programm) (funktioniert nicht|stürzt ab|wirft einen fehler), (was ist falsch|woran liegt das) {snippet}
    (corrige|pourquoi) (cette erreur|ce code ne marche pas|mon programme plante) {error}
    (mi código no funciona|por qué da error|corrige el error) {snippet}
    (не работает|исправь ошибку|почему ошибка) (в коде|скрипт|при запуске) {error}
    (这段代码报错|代码有错误|修复这个错误|为什么报错|程序不能运行) {snippet}
    (このコードが動かない|エラーが出る|バグを直して) {snippet}
    (코드가 안 돼요|오류가 나요|에러를 고쳐줘) {snippet}`,
  code_algorithm: `(implement|write|code) {algo} (in {lang}|using {lang}|)
    (write|implement|give me) a {lang} (function|program) (to find|that finds|to compute|that returns) {problem}
    given an array of integers (nums|arr|a), (return|find) {problem}
    given a (string s|binary tree|graph|linked list|matrix), (return|find|determine) {problem}
    solve this (leetcode|codeforces|contest|hackerrank) problem: you are given n integers. find {problem}. input format output format constraints 1 <= n <= 100000
    what is the time complexity of {algo} and how (does it work|is it implemented)
    (explain|show) how {algo} works (with|and give) (code|an implementation|pseudocode)
    find {problem} (using|with) (dynamic programming|recursion|two pointers|a heap|backtracking) (in {lang}|)
    each test case contains two integers n and k. print {problem}
    (implementiere|schreibe) (den algorithmus|eine funktion für) {algo} in {lang}
    (implementa|programa) (el algoritmo|una función recursiva) {algo} en {lang}
    (implémente|écris) (l'algorithme|une fonction récursive) {algo} en {lang}
    (реализуй|напиши) алгоритм (сортировки|поиска в ширину|дейкстры) на {lang}
    用{lang}实现(快速排序|二分查找|动态规划|最短路径)算法
    {lang}で(二分探索|クイックソート)のアルゴリズムを実装して`,
  analysis: `(analyze|analyse|evaluate|assess|critique|examine|discuss) (the impact of|the causes of|the effects of|the role of|) {topic} (on {who}|in europe|in modern society|)
    (what are|discuss) the (implications|consequences|effects|causes|ethical issues|long-term effects) of {topic} (on {who}|for {who}|)
    how (does|do|did|might|will|would) {topic} (affect|influence|impact|shape|change) {who}
    why (do|did|might|would) {who} (prefer|fear|support|reject|care about|oppose|trust) {topic}
    what if {topic} (had never existed|were banned|had failed|disappeared)
    what would happen (if|to {who} if) {topic} (stopped|ended|doubled|were illegal)
    (should|is it right that|is it ethical that|do we have a moral obligation to) {who} (be blamed for|pay for|ban|support) {topic}
    (summarize|summarise|give a summary of|what are the key points of|what is the main idea of) (the following|this) (text|article|passage|conversation|abstract) {material}
    (extract|identify|find|list) (the names|all dates|the entities|the keywords|the main arguments) (in|from) (the following|this) (text|article|passage) {material}
    (classify|categorize|label|determine) (the sentiment of|whether it is spam|the topic of|the tone of) (this|the following) (review|text|email|sentence) {material}
    (interpret|explain) (the symbolism of|the themes of|the meaning of|the factors behind|the reasons for) {topic}
    (what factors|which factors) (contributed to|led to|explain|influence) {topic}
    in a world where {topic} (becomes prevalent|is common), is it more important to (protect {who}|make progress)
    explain why {topic} (matters|failed|spread|is controversial)
    a patient has fever and pain. what (could be the reasons|is the likely diagnosis|tests would you recommend)
    (analysiere|bewerte|diskutiere) (die ursachen|die folgen|den einfluss) von {topic}
    (fasse|fass) (diesen text|den artikel) zusammen {material}
    warum (haben menschen|lehnen viele) {topic} (angst|ab)
    (analyse|évalue|discute) (les causes|les conséquences|l'impact) de {topic}
    (résume|résumez) (ce texte|cet article) {material}
    (analiza|evalúa|discute) (las causas|las consecuencias|el impacto) de {topic}
    (resume|resuma) (este texto|el artículo) {material}
    (analise|avalie) (as causas|o impacto) de {topic}
    (проанализируй|оцени|обсуди) (причины|последствия|влияние) {topic}
    (分析|评价)(原因|影响|后果) {topic}
    (总结|概括)(以下|这篇)(文章|内容) {material}
    {topic}の(影響|原因)を分析して`,
  writing: `(write|draft|compose|prepare|create) (a|an|a short|a formal|me a|an engaging) {doc} (to {to} about {about}|about {about}|for {to}|on {topic})
    (rewrite|rephrase|paraphrase|improve|proofread|edit|polish|shorten|correct the grammar of) (this|the following|my) (text|paragraph|email|sentence|essay|message) {material}
    (translate|translate this) (to|into) (french|german|spanish|english|latin|japanese): {material}
    (translate|how do you say) "(good morning|i am tired|where is the station|see you tomorrow)" (to|into|in) (japanese|french|german|russian|arabic)
    (proofread|rephrase|translate|shorten|rewrite): {material}
    (make this|this should be) (more formal|more concise|more polite|professional|sound friendlier) {material}
    (write|suggest|create|come up with) (a headline|a title|an outline|a template|a signature|a subject line|bullet points) for (a|an|my) {doc}
    you are a (copywriter|journalist|editor). write a {doc} (on|about) ({topic}|{about})
    (help me|can you help me) (write|with writing|word) (a|an) {doc} (to {to}|about {about})
    reply to this (email|review|message|complaint) {material}
    write (an essay|a report|a paper|a review|an argumentative essay|a position paper|a manual|a guide|requirements|a statement of purpose|a scope of work) (on|about|for) ({topic}|{about})
    i need (a|an) {doc} (for {to}|about {about})
    (correct|fix) the (spelling|grammar|punctuation) (in|of) {material}
    (schreibe|verfasse|entwirf) (eine e-mail|einen brief|einen artikel|einen aufsatz|eine bewerbung|eine rede) (an meinen chef|über {topic}|für {about})
    (übersetze|formuliere|korrigiere) (diesen text|den satz) (ins englische|um|): (ich bin müde|das treffen ist am montag|{material})
    (écris|rédige) (un e-mail|une lettre|un article|un discours|une dissertation) (à mon propriétaire|sur {topic})
    (traduis|corrige|reformule) (ce texte|cette phrase|la phrase suivante) (en anglais|en espagnol|) : (je suis fatigué|la réunion est reportée à lundi|il fait beau|{material})
    (escribe|redacta) (un correo|una carta|un artículo|un ensayo|un discurso) (a mi jefe|sobre {topic})
    (traduce|corrige|reescribe) (este texto|esta frase) (al inglés|): (estoy cansado|la reunión es el lunes|{material})
    (escreva|redija) (um e-mail|uma carta|um artigo|uma redação) (para meu chefe|sobre {topic})
    (scrivi|redigi) (una email|una lettera|un articolo|un saggio) (al mio capo|su {topic})
    (напиши|составь) (письмо|статью|эссе|сочинение|отзыв|речь) (начальнику|о {topic}|про {about})
    (переведи|исправь|перефразируй) (этот текст|предложение|на английский) : (я устал|встреча в понедельник|{material})
    (写一封|帮我写一封)(邮件|信)(给老板|给客户) (写一篇|)(文章|作文|报告)?
    (翻译|润色|改写)(这段话|下面的文字) {material}
    (メール|手紙|記事)を書いて {about}
    (翻訳|校正)して {material}
    (이메일|편지|기사)를 써줘 {about}`,
  math: `(solve|find x|solve for x): {formula}
    (calculate|compute|find|what is) (the area|the perimeter|the volume|the derivative|the integral|the probability|the sum|the value|the slope|the median) of {formula}
    (if|suppose) (a train|anna|a shop|a farmer|tom) (has|buys|sells|travels|needs) {num} {unit} and (gives away|loses|adds|finds) {num}, how (many|much) (are left|does it have|in total)
    how many {unit} (are there|does it take|would it take|are needed|will there be) (in {num} days|if each holds {num}|to fill {num}|per year)
    prove that (the square root of 2 is irrational|the sum of two odd numbers is even|there are infinitely many primes|{formula} has a solution|if n is even then n^2 is even)
    what is {num} (percent of|times|divided by|plus|minus) {num}
    (what is|what's|compute|calculate|) {num} (+|-|*|x|/) {num}
    (what is|how much is|what's|) {num}(+|-|*|/){num}(=|)
    (was ist|wie viel ist|combien font|cuánto es|сколько будет) {num} (+|-|*|/|mal|x) {num}
    (two|three) dice are rolled. what is the probability that the sum is {num}
    {num} {unit} cost {num} dollars. how much do {num} {unit} cost
    (the triangle|a circle|a rectangle) has (sides|radius|vertices at) {num} and {num}. find the (area|length|angle)
    (if i invest|a loan of) {num} (at|with) {num} percent interest, how much (will it be|do i pay) after {num} years
    solve this (riddle|logic puzzle|sudoku|math problem): three boxes, one light bulb, two doors
    what is the next number in the sequence {num}, {num}, {num}
    (derive|state|give) (the formula|the closed form|the general term) (for|of) (the nth term|a geometric series|compound interest)
    convert {num} (km to miles|celsius to fahrenheit|pounds to kg)
    let $x$ and $y$ be real numbers such that \\frac{num}{num} = {formula}. find $x+y$
    (löse|berechne|beweise) (die gleichung|die fläche|die ableitung|das integral|die wahrscheinlichkeit) {formula}
    wie viele {unit} (sind|bleiben|braucht man) (übrig|bei {num})
    (résous|calcule|démontre) (l'équation|l'aire|la dérivée|l'intégrale|la probabilité) {formula}
    (resuelve|calcula|demuestra) (la ecuación|el área|la derivada|la probabilidad) {formula}
    (resolva|calcule) (a equação|a área|a derivada) {formula}
    (risolvi|calcola) (l'equazione|l'area|la derivata) {formula}
    (реши|вычисли|найди|докажи) (уравнение|площадь|производную|интеграл|вероятность) {formula}
    сколько {unit} (осталось|нужно|всего) {num}
    (求解|计算|证明)(方程|面积|导数|概率|积分) {formula}
    (方程式|面積|確率)を(解いて|計算して) {formula}`,
  creative: `(tell me|write|make up|i want) a (story|tale|fairy tale|short story) about {hero} who is (afraid of flying|in love|always late|lost in the city|the last of its kind)
    (write|tell me|create|compose|generate|make up) (a|a short|a funny|a sad|an epic) {fic} about {hero}
    (write|create) (a|an) {fic} in (the style of|the voice of) {person}
    (act as|act like|pretend to be|you are|speak like|talk like|roleplay as|imagine you are) {person} (and answer me|. how was your day|, what do you think of modern life|. say hello)
    imagine (you are|you're|yourself as) {hero}. (describe your day|what do you see|how do you feel|tell us about your life)
    (invent|come up with|brainstorm|suggest|think of|give me) (names|a name|a slogan|ideas|a funny name|a creative title|an acronym|a nickname|a new word) for (a coffee shop|a band|my dog|a startup|a fantasy world|a video game|a board game)
    (describe|create|design) (a character|a magical creature|a fantasy kingdom|a planet|a villain|a d&d campaign|an rpg quest|a movie plot)
    (tell|write) (me|us|) (a joke|jokes|a riddle|a pun|a bedtime story)
    as {person}, describe (your daily life|your signature dish|the last battle|your new home)
    (continue|finish) this story: {hero} opened the door and
    (write|make) (lyrics|a song|a rap battle|a poem|a haiku) (about|for|between) {hero} (and {person}|)
    (a|write a) (sarcastic|satirical|humorous|whimsical|dramatic) (take on|article about|speech by) {person}
    (schreibe|erzähle|dichte) (ein gedicht|eine geschichte|ein märchen|einen witz|ein lied) über (einen drachen|den herbst|das meer)
    stell dir vor, du bist (ein pirat|ein baum|ein ritter)
    (écris|raconte|invente) (un poème|une histoire|un conte|une blague|une chanson) sur (un dragon|la mer|l'automne)
    (escribe|cuéntame|inventa) (un poema|un cuento|una historia|una canción|un chiste) sobre (un dragón|el mar|un gato)
    (escreva|conte) (um poema|uma história|um conto|uma piada) sobre (um dragão|o mar)
    (scrivi|racconta) (una poesia|una storia|una canzone|una barzelletta) su (un drago|il mare)
    (напиши|сочини|расскажи) (стихотворение|сказку|рассказ|песню|анекдот) (про кота|о любви|про дракона)
    (写一首|写一个|讲一个)(诗|故事|笑话|童话|歌)(关于猫|关于大海|)
    (物語|詩|俳句|冗談)を書いて 海 猫
    (이야기|시|소설|노래)를 써줘 고양이`,
  planning: `(plan|help me plan|organize|create a plan for|make a plan for) {trip}
    (create|make|design|write|give me) (a|an) (itinerary|schedule|training plan|meal plan|study plan|roadmap|timetable|lesson plan|workout plan|checklist|curriculum|syllabus|agenda|marketing plan|project plan|budget plan|weekly plan|routine) for ({trip}|{train})
    (a|i need a) {num}-(day|week|month) (plan|schedule|itinerary|training plan|program|roadmap) (for|to) ({train}|{trip})
    (what should my|give me a) (workout split|daily routine|weekly schedule|training week|onboarding plan) (be|look like|) (for {train}|)
    (outline|develop|propose) (a|the) (strategy|action plan|rollout plan|timeline|step-by-step plan|migration plan|go-to-market strategy) (for|to) (reach net zero|launch an app|grow a channel|{train}|{trip}) (over the next {num} years|)
    set (smart goals|goals|milestones|okrs) for (the next {num} months|{train}|a sales team)
    how (should|would|do) i (plan|organize|schedule|prepare for) ({trip}|{train}|my week|my studies)
    (design|prepare) a (course|curriculum|bootcamp|semester) (on|about|for) {topic}
    planning (a trip to|travel in|a visit to) (peru|vietnam|iceland|scotland)
    (plane|erstelle) (eine reise|einen reiseplan|einen trainingsplan|einen wochenplan|einen lernplan) (nach rom|für {num} wochen|)
    (planifie|prépare|crée) (un voyage|un itinéraire|un programme d'entraînement|un planning) (à rome|pour {num} jours)
    (planifica|organiza|crea) (un viaje|un itinerario|un plan de estudio|una rutina de ejercicios) (a roma|de {num} días)
    (planeje|crie) (uma viagem|um roteiro|um plano de estudos|um cronograma) (para roma|de {num} dias)
    (pianifica|crea) (un viaggio|un itinerario|un piano di allenamento) (a lisbona|di {num} giorni)
    (составь|спланируй) (план поездки|маршрут|расписание|план тренировок|план на неделю)
    (制定|帮我制定|安排)(旅行计划|学习计划|行程|日程|训练计划)
    (旅行|勉強)の(計画|予定)を立てて
    (여행|공부) (계획|일정)을 짜줘`,
  comparison: `(compare|compare and contrast|give me a comparison of) {a} (and|with|to|vs) {b}
    {a} (vs|vs.|versus|or) {b}
    what (is|are) the (difference|differences|main differences|similarities) between {a} and {b}
    (what are|list|give me|make a list of) the (pros and cons|advantages and disadvantages|benefits and drawbacks) of {a} (versus {b}|compared to {b}|over {b}|)
    (which is better|which one is better|which should i choose|what is better), {a} or {b}
    is {a} (better|worse|faster|cheaper|healthier|safer) than {b}
    how (does|do|is) {a} (differ from|compare to|different from) {b}
    should i (buy|learn|use|choose|get|take) {a} or {b}
    why (choose|use) {a} (over|instead of) {b}
    what (is the advantage|are the advantages|is the benefit) of {a} over {b}
    was ist (der unterschied|besser) zwischen {a} und {b}
    (vergleiche|vor- und nachteile von) {a} (und|mit) {b}
    quelle est la différence entre {a} et {b}
    (compare|avantages et inconvénients de) {a} (et|avec) {b}
    cuál es la diferencia entre {a} y {b}
    (compara|ventajas y desventajas de) {a} (y|con) {b}
    qual (é a diferença entre|é melhor) {a} (e|ou) {b}
    (confronta|qual è la differenza tra) {a} e {b}
    (сравни|в чем разница между|что лучше) {a} (и|или) {b}
    (преимущества и недостатки) {a}
    (比较|对比){a}和{b} {a}和{b}(有什么区别|哪个好|的优缺点)
    {a}と{b}の(違い|比較|どちらがいい)
    {a}와 {b}의 차이점 비교`,
  other: `(what is|what's|who is|define|what are) {fact}
    (who|when|where) (invented|wrote|was|did|discovered) {thing} (born|happen|)
    (explain|how does|how do|can you explain|tell me about) {thing} (work|in simple terms|to a child|)
    (how can i|how do i|how to|what is the best way to|tips to|give me tips to|what should i do to) {advice}
    (recommend|suggest|list|give me a list of|what are some good|name five|what are the best) {items}
    (hi|hello|how are you|thank you|good morning|who are you|what can you do|tell me something interesting|i am bored|i feel sad|are you human)
    (my cat|my dog|my neighbour|my car|my back) (hurts|is acting strange|makes noise), (what should i do|should i be worried)
    (is it true that|can|does|do) (cats see in the dark|you eat raw eggs|plants feel pain|sharks sleep)
    (a recipe for|give me a recipe for|how do you cook|what can i cook with) (vegan dessert|tomato soup|pancakes|rice and eggs|a low carb dinner)
    (what are the steps|what do i need) to (start a business|get a visa|file taxes|adopt a child)
    what are the (symptoms|treatments|side effects|ingredients|rules|key principles|health benefits) of ({thing}|chess|ibuprofen|yoga|the flu)
    (what happened|who won|where was it held) (in 1989|in the second world war|at waterloo|in 2010)
    (was ist|wer ist|wo liegt|wann war) {fact}
    (wie kann ich|tipps um) (besser schlafen|geld sparen|gitarre lernen)
    (erkläre|erklär mir) {thing}
    (qu'est-ce que|qui est|où se trouve) {fact}
    (comment puis-je|conseils pour) (mieux dormir|perdre du poids)
    (qué es|quién es|dónde está) {fact}
    (cómo puedo|recomiéndame) (dormir mejor|una película|un libro)
    (o que é|quem é|onde fica) {fact}
    (che cos'è|chi è|dove si trova) {fact}
    (что такое|кто такой|где находится|расскажи про) {fact}
    как (лучше спать|приготовить борщ|похудеть)
    (什么是|谁是|介绍一下){fact} (推荐|)(几部电影|几本书)?
    {thing}とは(何ですか|)`,
}

/** Returns the project's sentences with their types, `each` of every template. Deterministic. */
export function sentencesOfOurOwn(each: number): readonly { readonly type: QueryType; readonly text: string }[] {
  return queryTypes.flatMap(type => filled(templates[type], lists, each).map(text => ({ type, text })))
}

/** Returns sentences from templates, one per line: `each` of every template. Deterministic. */
export function filled(lines: string, named: Readonly<Record<string, string>>, each: number): readonly string[] {
  return lines.split('\n').flatMap(line => {
    // Each template has its own generator, so that adding one does not change the others.
    const random = seededRandom(hashOf(line.trim()))
    const pick = (choices: string) => {
      const all = choices.split('|')
      return all[Math.floor(random() * all.length)] ?? ''
    }
    const fill = () =>
      line
        .replace(/\(([^()]*)\)/g, (_, choices: string) => pick(choices))
        .replace(/\{(\w+)\}/g, (_, name: string) => pick(named[name] ?? name))
        .trim()
    return Array.from({ length: each }, fill)
  })
}

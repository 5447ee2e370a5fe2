/**
 * Prompts of the project by the model capability they need, from signs of hard work (interdependent constraints,
 * design, proof, diagnosis, expertise, costly errors) or easy work (lists, facts, small changes, polite phrases,
 * boilerplate). Each field has both in the same words, terse and long, so that subject, length and tone carry no
 * signal. `(a|b)` is one of several.
 */

import { type Level, levels } from '../models/capability-levels.ts'
import { hashOf } from '../text/analysis/features.ts'
import { seededRandom } from './folds.ts'
import { filled } from './query-templates.ts'

type Field = Readonly<Record<Level, string>>

const fields: readonly Field[] = [
  {
    // Programming.
    light: `write a (python|ruby|go) (function|script) that (reads|parses) a csv file
      (reverse a string|sort a list|read a json file|count the lines of a file) in (javascript|python|rust)
      how do i print the current date in java
      what does the keyword static do in java
      rename the variable x to total in this line: x = a + b
      Hi! I just started learning to code last week and my teacher asked us to (print|write a loop that prints) the numbers from 1 to 20 in python. Can you show me how that looks? Thanks a lot!
      add a comment to each line of this function: def add(a, b): return a + b
      what is a (mutex|closure|pointer|coroutine)
      give me a regular expression for digits only
      Which of these are compiled languages: Rust, Python, C++, JavaScript, Haskell? I am filling in a quiz for my little brother and only need the names
      convert this for loop to a list comprehension: for n in nums: out.append(n * 2)
      hello world in kotlin
      my friend and I were arguing over lunch about which came first, C or C++, can you settle it quickly? there is a sandwich at stake
      what is the syntax for a (switch|try) statement in (php|swift)
      show an example of a unit test for a function that adds two numbers
      write a todo list component in react`,
    middle: `write a python script that (downloads all images of a web page|renames photos by the date in their metadata|sends a daily email with new rows of a spreadsheet) and logs failures
      Refactor this class into smaller functions and add tests for the main cases
      Implement an LRU cache with constant time get and put
      Build a small REST API in Express with login, pagination and input validation
      why does my loop skip the last item, and how do I fix it`,
    strong: `Implement a lock-free (queue|stack|hash map) in (C++|Rust) and argue why it is linearizable
      Write a (type checker|garbage collector|register allocator|query optimizer) for a small functional language
      Our (service|worker|job) deadlocks once a week under load. Here are two thread dumps; find the cause and propose a fix that does not hurt throughput
      Design the plugin system of an editor so that plugins written by strangers cannot freeze or corrupt it
      Port this single-threaded simulation to the GPU, keep results bit for bit the same, explain which loops cannot be parallelized and why
      Memory grows by 2 MB an hour in production only. Heap snapshots look alike. How would you narrow it down, step by step, without downtime
      Make this parser incremental: after an edit of one token only the affected subtree may be parsed again, error recovery included
      Hi, hope your week is going well! I would love some help: we need a rate limiter that works across 40 nodes without a central store, stays within 2 % of the limit and survives partitions. Could you design it and walk through the failure cases? Thanks so much!
      Write a B-tree with concurrent readers and writers, crash recovery included
      Explain why double-checked locking was broken in old memory models and construct an execution that shows it
      Turn this 3000-line class into modules without changing behavior, give the order of steps and the tests that protect each one
      Invent a diff algorithm for JSON trees that finds moved nodes, with its complexity and a proof of termination
      A test fails one time in two hundred, only on CI, only since the upgrade. Work out the most likely causes and how to tell them apart
      Write a regex engine with lookahead that never takes exponential time`,
  },
  {
    // Systems and operations.
    light: `what does (DNS|CDN|API|TCP|Kafka|SLA) stand for
      put these in alphabetical order: (Redis, Kafka, Postgres, Nginx|Kubernetes, Docker, Ansible, Terraform|Paxos, Raft, Zookeeper, Etcd)
      list the http methods
      what port does (https|ssh|postgres|redis) use
      how do i restart nginx
      command to list docker containers
      My manager keeps saying the word microservices in every meeting, and I smile and nod because I do not want to look silly. In one sentence, what is a microservice?
      how do I see which process uses port 8080
      write a one line commit message for a fix of a typo in the readme
      is redis a database or a cache
      Expand the acronym CRDT
      what is the difference between http and https in simple words
      I am writing a name tag for our new team member, she is a site reliability engineer. How is that usually abbreviated? We print them in an hour so a quick answer helps
      show a minimal docker-compose file with one postgres`,
    middle: `Write a Dockerfile for a node app with a multi-stage build and a health check
      Explain how a load balancer decides where to send requests, with the pros and cons of three methods
      Set up a GitHub Actions workflow that runs tests and deploys to staging
      Compare Kafka and RabbitMQ for a shop with few orders an hour`,
    strong: `Architect a multi-tenant (billing|reporting|search|messaging) (system|platform) with per-tenant isolation
      Design a (global|distributed|highly available) (key-value store|job scheduler|rate limiter|lock service|file system) that survives the loss of a region
      Migrate 40 TB of live data to a new schema without downtime, with a way back at every step
      p99 latency tripled after the upgrade while CPU fell. Diagnose
      Design end-to-end exactly-once processing from Kafka to Postgres and say where it can still break
      Plan the capacity and sharding for 2 million writes per second with hot keys
      Hello! I hope you are doing great. When you have a moment: our clusters in two regions disagree about who leads after a short network split, and customers got charged twice. Could you reason out what happened and how we make it impossible? Thank you!
      Which consistency model does a shopping cart that works offline need, and how do you merge conflicts so that nothing paid for is lost
      Write the disaster recovery plan for a bank's ledger: RPO zero, RTO five minutes, two providers, yearly audit
      Threat model for a service that holds other companies' signing keys
      Cut our cloud bill in half without touching reliability: here is the inventory and the traffic by hour
      Kubernetes evicts our pods at random under memory pressure though limits are never reached. Root cause and remedy
      Zero-trust network for 300 sites, legacy machines included, rolled out in phases
      Prove that your failover protocol never has two leaders, and state each assumption about clocks`,
  },
  {
    // Data and SQL.
    light: `sql to (select all rows from a table|count rows in a table|delete a row by id)
      what is a primary key
      how do I sum a column in excel
      write a query that returns all customers from Berlin
      Hey there, quick one from the office: I have a column of first names in Google Sheets and a column of last names, and I would love them in one column with a space between. What do I type? Thank you!!
      sort this list by date: 3 May, 1 March, 9 April
      convert these three rows to json: id,name 1,Ann 2,Bob 3,Eve
      what does LEFT JOIN mean
      turn this table into bullet points
      what is the median of 3, 9, 4
      define cardinality
      Which aggregate functions exist in SQL? just name five`,
    middle: `write a query for the top three products per category by revenue this year
      Clean this customer list: trim blanks, unify phone numbers and mark duplicates, in pandas
      Make a chart of monthly sales with a moving average and explain the trend`,
    strong: `This query takes 40 minutes on 900 million rows although both columns are indexed. Read the plan and rewrite it
      Model a bitemporal schema for insurance policies: corrections, retroactive changes, audit queries as of any date
      Find gaps and overlaps between millions of booking intervals in one pass of SQL and prove that none is missed
      Write a recursive query that allocates shared costs over a graph of departments with cycles until it converges
      Design the warehouse for a retailer with late arriving facts, slowly changing dimensions and four source systems that disagree
      Deduplicate 50 million people without a common key, with a measured error rate and a review queue
      Choose partitioning, clustering and compression for 5 years of sensor readings queried in three different ways
      Estimate churn causally from observational logs, discuss confounders and how you would falsify the estimate
      Could you please help, no rush at all: our nightly load sometimes doubles revenue, only when a file arrives twice and a worker restarts. I would love a redesign that makes every step idempotent, thanks!
      Explain the anomalies that snapshot isolation permits here and restore serializability without locking the table`,
  },
  {
    // Mathematics.
    light: `what is (7 times 8|12 plus 30|15 % of 80|the square root of 144)
      what is a prime number
      define (eigenvalue|topology|group|integral) in one sentence
      convert 3/4 to a percentage
      My daughter is doing her homework at the kitchen table and we are both tired. She has to round 3.14159 to two decimals, what does she write down?
      how many degrees are in a triangle
      solve x + 5 = 12
      what is the formula for the area of a circle
      list the first ten prime numbers
      Who proved the theorem of Fermat, Wiles or Perelman? It is for a crossword
      what does the symbol ∑ mean`,
    middle: `Solve the quadratic 2x^2 - 7x + 3 = 0 and explain each step
      A train leaves at 9:00 at 80 km/h, a second at 9:30 at 110 km/h. When and where does the second catch up?
      Explain how to integrate by parts with two examples
      How many ways can 8 people sit round a table if two of them refuse to sit together`,
    strong: `(Prove|Show) that (every finite group of prime order is cyclic|there are infinitely many primes congruent to 3 mod 4|a continuous image of a compact set is compact)
      Does every bounded sequence in this space have a convergent subsequence? Prove it or give a counterexample
      Derive the (asymptotics|distribution|generating function) of the number of (lattice paths|cycles in a random permutation|spanning trees)
      Classify all groups of order 12 up to isomorphism
      Find all functions f on the reals with f(x + f(y)) = f(x) + y and justify that there are no others
      Generalize the result to infinite dimensions and point out exactly which step fails
      Evaluate the integral of log(1+x)/x from 0 to 1 without looking it up
      Hope you are well! A small thing that has bugged me for a year: can one cut a square into an odd number of triangles of equal area? I would be thrilled by a full argument. Many thanks!
      Bound the mixing time of this Markov chain and say whether the bound is tight
      Is this norm equivalent to that one? Give constants or a sequence that shows there are none
      Formalize this argument, find the gap and repair it
      Compute the fundamental group of the complement of two linked circles`,
  },
  {
    // Physics and engineering.
    light: `what is the speed of light
      what unit is force measured in
      who discovered (gravity|radioactivity|the electron)
      convert 100 fahrenheit to celsius
      name the planets in order
      what does entropy mean in simple terms
      We are at the science museum with the kids and there is a big sign about quantum tunnelling that nobody understands. Could you give us one friendly sentence so we can move on to the dinosaurs?
      what is heavier, a kilo of iron or a kilo of feathers
      what does LED stand for
      is glass a conductor
      spell thermodynamics`,
    middle: `Explain why a spinning top does not fall over
      A 2 kg block slides down a 30 degree incline with friction 0.2. What is its acceleration
      How does a heat pump work and when is it efficient`,
    strong: `Derive (the geodesic equation|the Navier-Stokes equations|the Casimir force|Hawking radiation|the Boltzmann equation) from first principles
      Explain general relativity with tensor calculus
      Size the heat exchanger and pump for a 2 MW data hall: constraints, margins, what fails first
      Solve the double pendulum for small angles, then show where chaos enters
      Design a control loop for an inverted pendulum with a delayed sensor and prove stability
      Why does the measured resonance split at high power? Propose two mechanisms and the experiment that separates them
      Choose material and cross-section for a bridge bearing under cyclic load and salt, with fatigue life
      Perturbation theory diverges here; resum it and estimate the error
      Two clocks are flown round the earth in opposite directions. Work out the difference including both effects, and its uncertainty
      Write a finite element solver for heat flow with moving boundary, validate it against a known case
      Hey! Sorry to bother you. My satellite tumbles after each eclipse though the wheels are not saturated. What could it be, and how do I find out from telemetry alone? Thank you kindly`,
  },
  {
    // Chemistry and biology.
    light: `what is the symbol for (gold|sodium|iron)
      what do plants need to grow
      how many chromosomes do humans have
      what does DNA stand for
      list the noble gases
      is a whale a mammal
      My son asked at breakfast why leaves turn yellow and I promised to look it up. A short answer a six year old likes would be wonderful, he is very curious these days
      what is the formula of water
      name three amino acids
      which organ makes insulin
      define enzyme
      Put these in alphabetical order: mitochondria, ribosome, nucleus, golgi apparatus`,
    middle: `Explain photosynthesis to a high school class, with the light and the dark reactions
      Balance this equation and explain how: C3H8 + O2 -> CO2 + H2O
      Compare mitosis and meiosis in a table`,
    strong: `Plan a retrosynthesis of (a macrolide|a beta-lactam|this alkaloid) with protecting groups and stereocontrol
      Design the (experiment|assay|screen) that tells apart direct binding from an indirect effect, with controls and sample size
      Assign the NMR peaks to a structure and rule out the isomers
      Why does this enzyme speed up after mutation far from its active site? Propose mechanisms and tests
      Model the dynamics of this gene circuit and find when it oscillates
      Derive the rate law for the proposed mechanism and state which data would refute it
      Infer the phylogeny under incomplete lineage sorting and say how sure one can be
      Our cell line loses expression after ten passages. Find the cause with the fewest experiments
      Hello and happy Monday! Could you kindly work out how a drug can raise the level of the very protein it degrades, and how we would prove which explanation holds? Thank you!
      Single-cell data from two labs disagree: batch effect or biology? Lay out an analysis plan with failure modes
      Optimize yield and purity of a three-step flow synthesis under a pressure limit`,
  },
  {
    // Medicine.
    light: `what is a normal body temperature
      what does (MRI|ECG|ICU|BMI) stand for
      how many bones does an adult have
      which vitamin is in oranges
      My grandmother has her first appointment at the eye doctor on Tuesday and she is a bit nervous. What is the doctor who looks after eyes called? I want to write it on her calendar
      is ibuprofen an antibiotic
      spell ophthalmologist
      list the four blood groups
      what is the plural of diagnosis
      what does hypertension mean`,
    middle: `Explain to a patient how to prepare for a colonoscopy
      What are common causes of a cough that lasts three weeks and when should one see a doctor
      Summarize this discharge letter in plain language for the family`,
    strong: `Differential diagnosis: fever, new murmur, kidney injury, low platelets after a dental visit. Next steps and why
      Patient on warfarin with a mechanical valve needs urgent surgery and has a platelet count of 40. Manage bleeding and clotting
      Design an adaptive trial for a rare disease with 60 patients: endpoints, stopping rules, ethics
      Reconcile these twelve drugs for an 84-year-old with falls and renal impairment, and justify each change
      The registry finds benefit and the trial finds harm. Explain how both may be true and which you would act on
      Write a sepsis protocol for a ward without intensive care, with triggers and limits of evidence
      Interpret this blood gas with mixed disorder step by step
      Critique the survival analysis of this paper: immortal time, competing risks, crossover
      Dear assistant, thank you for your time! A child with repeated infections, eczema and bruises: what single condition joins these, what would rule it out, and how should we proceed tonight?
      Dose this antibiotic in a patient on dialysis with resistant bacteria and a seizure history`,
  },
  {
    // Law.
    light: `what does (NDA|GDPR|tort|plaintiff) mean
      who appoints the judges of the supreme court
      how many jurors sit on a jury
      what is the opposite of guilty
      fix the typo: the defendent was aquitted
      Good afternoon, I am putting together a little glossary for our tenants' newsletter, nothing formal at all. What is the ordinary word for a lessee?
      is a verbal agreement a contract, yes or no
      write a one line copyright notice
      abbreviate: limited liability company
      list three kinds of contracts`,
    middle: `Draft a simple rental agreement for a parking space
      Explain the difference between a trademark and a patent for a founder
      Summarize this privacy policy in ten bullet points`,
    strong: `Draft the (liability|indemnity|change of control|earn-out) clause for a cross-border acquisition so that both sides can sign, and flag what each gives up
      Is this non-compete enforceable in (California|Germany|Ontario) if the employee moved during the term? Argue both sides
      Advise on exporting health data of Europeans to a US cloud after the last rulings: instruments, residual risk, what to document
      Find the contradictions between these two contracts and say which clause prevails and why
      Write a motion to dismiss on standing, anticipate the reply
      Reconcile the two precedents or show that one must be overruled
      Who is liable when an autonomous truck swerves to avoid a child and hits a parked ambulance? Work through every party
      Structure a fund for investors from five countries with conflicting rules, minimize withholding, stay compliant
      Hi there! Hope this is not too much trouble. My landlord sold the building, the new owner ignores an oral promise, and there is a forged addendum. What are all my claims, in what order, with what evidence? Thanks ever so much
      Assess antitrust risk of this merger: market definition, remedies, likely theory of harm`,
  },
  {
    // Finance.
    light: `what does (ETF|IPO|APR|EBITDA) stand for
      what is 20 % of 350 dollars
      what is a stock
      convert 50 euros to cents
      what currency is used in japan
      I am splitting a dinner bill with three friends, it came to 84 euros and everybody had more or less the same thing. How much does each of us pay? No tip this time
      define inflation in one sentence
      list four kinds of bank accounts
      what is the plural of index fund
      is a bond debt or equity
      write a reminder that the invoice of May is due`,
    middle: `Compare leasing and buying a car for someone who drives 15,000 km a year
      Make a monthly budget for a family of four with 4,200 after tax
      How does compound interest work, with an example over 20 years`,
    strong: `Build a DCF for a loss-making (software|biotech) company, justify each assumption and stress the three that matter
      Price a (barrier|callable|convertible) note under stochastic volatility and hedge it with liquid instruments
      Restructure debt of a company that breaches two covenants next quarter: options, who loses what, sequence
      Design a pension glide path with inflation risk, longevity and a minimum guarantee
      Why did our hedge lose money in the very scenario it was bought for? Decompose the loss
      Transfer pricing for a group with IP in one country and losses in another, defensible in audit
      Optimize a portfolio with transaction costs, taxes and limits on turnover; show how sensitive it is to the estimates
      Detect accounting manipulation from these five statements and rank the red flags
      Hello, I hope you had a lovely weekend! Whenever convenient: retire at 52 with two flats, a company share plan that vests late and a child at university. What is the order of withdrawals over thirty years that survives a bad first decade? Thanks a million!
      Model bank run dynamics when insured and uninsured deposits react differently, then propose a liquidity rule`,
  },
  {
    // History, politics, economics.
    light: `when did (world war two|the cold war|the french revolution) (start|end)
      who was the first president of the united states
      list the (presidents after 1990|kings named henry)
      what is the capital of (australia|canada|peru)
      in which century did the roman empire fall
      which country is bigger, france or spain
      We are at a pub quiz and our history person is in the bathroom, so this has to be fast. Who was prime minister of Britain at the end of the war?
      what does NATO stand for
      how many members has the european union
      define feudalism in one sentence`,
    middle: `Summarize the causes of the First World War in two pages for a school
      Compare the electoral systems of Germany and the United Kingdom
      Explain why inflation rose in the seventies`,
    strong: `Was the fall of Rome a collapse or a transformation? Weigh the schools of thought against the archaeology and take a position
      Build a counterfactual: no assassination in 1914. Which causes still bring war, which do not, and how would one test that
      Assess to what extent (the Marshall Plan|land reform|the gold standard) caused recovery, against the strongest rival explanation
      Design a constitution for a divided country with three peoples, one port and a history of coups
      Which sources on this massacre are reliable? Reconstruct the day from five that contradict each other
      Forecast the second round effects of a carbon border tax on four regions and state what would prove you wrong
      Trace how a word's meaning in treaties shifted over a century and what that did to sovereignty
      Thank you in advance, you are a star! I would like to know why some poor states escape civil war while similar neighbours do not: a theory, rival theories, cases that fit none, and how to decide
      Write the strongest case for and against abolishing the second chamber, then judge it
      Explain the resource curse with a model in which institutions are chosen, not given`,
  },
  {
    // Philosophy and social thought.
    light: `who wrote the republic
      what does (epistemology|stoicism|a priori) mean
      list three greek philosophers
      spell nietzsche
      in which language did kant write
      Our book club meets tonight and I have not finished the book, please do not tell anyone. Just remind me: was Camus French or Belgian?
      quote about kindness
      what is the opposite of free will
      was socrates the teacher of plato, yes or no
      give me a synonym for virtue`,
    middle: `Explain utilitarianism with two everyday examples and one objection
      Summarize the allegory of the cave for a class of sixteen-year-olds
      Compare stoicism and buddhism`,
    strong: `Can a deterministic agent deserve blame? Defend a position against its best two objections
      Reconstruct the argument of this passage in premises, find the hidden one, and attack it
      Does the repugnant conclusion follow from any theory that prefers more welfare? Lay out the assumptions one by one
      Reconcile Kant on lying with a murderer at the door, without making an exception by hand
      Is consciousness explained by its function? Evaluate the zombie argument and a reply that does not beg the question
      Write a dialogue between Hume and a modern statistician on induction in which neither wins cheaply
      What would it take for a machine to have interests? Develop criteria, apply them to three hard cases
      So sorry for a big one, and cheers for any help: if identity is only a matter of degree, what becomes of promises? I would like a real argument, its costs, and where you would give way
      Show that the two definitions of harm come apart and which one the law should use
      Compare Rawls and Nozick on a case that both theories get wrong`,
  },
  {
    // Creative writing.
    light: `write a (poem|haiku|limerick|joke) about (cats|autumn|coffee|the sea)
      write a poem
      tell me a joke
      give me five names for a goldfish
      happy birthday message for my aunt
      a rhyme for orange
      Hey! My little niece turns four on Saturday and she is completely mad about unicorns, rainbows and anything with glitter on it. Could you write two cheerful lines that I can put in her card? Thank you so so much!
      a caption for a photo of my dog at the beach
      slogan for a bakery
      make this sentence funnier: I am late again
      start a bedtime story with a bear
      list ten adjectives for a dark forest`,
    middle: `Write a short story of 600 words in which a lighthouse keeper finds a letter
      Write song lyrics about moving away, with a chorus and a bridge
      Outline a mystery novel with five suspects`,
    strong: `Write a villanelle whose refrains change meaning each time although no word changes
      A story told backwards by an unreliable narrator in which the reader solves the crime before the detective, every clue fair
      Sustain three voices, each with its own syntax, through one argument at dinner; nobody says what the quarrel is about
      Plot a seven-book series: arcs, reversals, what each book hides from the last, and where it may go wrong
      Rewrite this chapter from the servant's side so that every line of the original stays true and its sense turns over
      A sestina about grief in plain words, no abstract noun, and the envoi must console without lying
      Build a world with one physical law changed and work out trade, religion and war from it consistently
      Hi friend! If you have time I would adore a sonnet that reads as praise from top to bottom and as an accusation from bottom to top. Strict metre please, thank you thank you
      Diagnose why this novel sags in the middle: structure, motive, pace. Propose a revision plan scene by scene
      Write a monologue with two meanings at once, one for her husband who listens and one for the audience`,
  },
  {
    // Editing and translation.
    light: `translate (good morning|thank you|where is the station|this sentence) (to|into) (spanish|german|french)
      fix the spelling: (recieve|definately|seperate)
      make this more polite: send me the file
      what is the past tense of go
      is it who or whom in this sentence
      Hello, I hope all is well with you! I am about to send a mail to my whole department and I always get nervous about commas. Could you check just this one line: "Thank you all for coming to the party yesterday it was great."? Many thanks and have a lovely day!
      shorten this to ten words
      rewrite this in the passive voice: the dog bit the man
      a synonym for (important|happy|quick)
      capitalize this title: the old man and the sea
      proofread this paragraph
      bullet points from this text please
      translate the word nevertheless
      Summarize this article in three sentences`,
    middle: `Rewrite this cover letter for a role in another industry, keep it on one page
      Translate this product page into French and adapt units and tone
      Edit this essay for clarity and flow, and explain the main changes`,
    strong: `Translate this poem into (German|English|Spanish) keeping rhyme, metre and the double meaning of the last word; explain each loss
      Localize this contract between two legal systems where half of the terms have no equivalent
      Reconcile three translations of the treaty and say which reading the drafters intended
      Merge these four drafts by different authors into one voice, keep every claim, mark contradictions
      Edit this grant proposal to half its length without losing an aim, a number or a reviewer's objection
      Translate the pun in each line so that it is still a pun, and argue your choices
      Turn this deposition into plain language that a hostile lawyer could not call misleading
      Restore this damaged inscription: candidates for each gap, weighed by grammar and by habit of the time
      Good evening! If it is not too much trouble, subtitle this scene: 38 characters a line, two lines, dialect kept, jokes that work for deaf viewers too. Thanks in advance`,
  },
  {
    // Plans of everyday life, food, travel.
    light: `give me a recipe for pancakes
      what can I cook with eggs and rice
      how long do i boil an egg
      list (3|five) (fruits|vegetables|countries|colours)
      list 3 fruits
      packing list for a weekend at the beach
      gift ideas for a ten year old
      what day is it tomorrow if today is friday
      set an agenda for a half hour meeting
      Hi! So my sister is visiting this weekend with her two kids and I have not bought anything yet, the fridge is basically empty. Could you give me a simple shopping list for two breakfasts? Nothing fancy, thanks!!
      how many cups are in a litre
      suggest a name for my cat
      remind me what to bring to a picnic
      hi
      thanks, that is all
      how are you today`,
    middle: `Plan a week of dinners for a vegetarian family under 80 euros with a shopping list
      A 5-day itinerary for Lisbon with two children and no car
      A 12-week training plan for a first half marathon
      Plan a birthday party for 20 people with a timeline`,
    strong: `Schedule 14 exams, 9 rooms and 30 examiners so that nobody has two in a row, religious holidays and a strike day respected; prove that it is feasible or say what must give
      Seat 120 wedding guests: feuds, allergies, wheelchairs, three languages, each table mixed. Give the method, the plan and what you could not satisfy
      Route a band through 22 cities within 30 days, driving limits, venue windows, cheapest total, and a fallback if one date falls out
      Plan my move with two careers, visas, a sick parent and a school year that starts before the house is free: critical path, decision points, worst case
      Roster for a clinic with 11 nurses, contracts, skills, night rest, fairness over six months
      Hello dear, I hope you slept well! Six of us want to share a house: two work nights, one is allergic, one pays half. Could you work out rules and a split of the rent that nobody could reasonably envy, and show why? Thanks a bunch
      Build a year of study for someone who works shifts, forgets fast and must pass three exams that depend on each other
      Menu for 40 with nine diets from one oven in three hours, with the order of every step`,
  },
  {
    // Business, marketing, people.
    light: `subject line for a newsletter
      write a tagline for a coffee shop
      what does (KPI|B2B|SEO|ROI) stand for
      list five social media platforms
      Hello team, long day here. I need to tell our customers that the shop is closed on Monday because of the holiday. Could you put that into one friendly sentence for the door? Appreciate it!
      a polite no to a meeting invitation
      thank you note to a client
      job title for someone who writes ads
      out of office message for next week
      write a short linkedin post that we are hiring a cook
      three hashtags for a yoga studio
      write a product description for a mug`,
    middle: `Write a press release for the launch of a bike rental app
      A content calendar for a month for a small museum
      SWOT analysis of a local bookshop
      Draft interview questions for a junior accountant`,
    strong: `Enter a market where two incumbents bundle our product for free: strategy, sequence, what must be true, when to stop
      Price a product with three segments that resell to each other
      Turn round a division that loses customers and staff at once: diagnosis, hypotheses, ninety days, what not to do
      Design an incentive plan for sales that cannot be gamed and survives a bad year; show how one would try
      Attribute revenue to channels when the ads target people who would buy anyway
      Write the board memo on closing a plant: law, people, cash, reputation, three options and a recommendation that holds if the forecast is wrong by a third
      Forecast demand for a product without history, quantify how wrong you expect to be and plan stock accordingly
      Hi! Loving your work. Our two founders disagree about selling and each holds half. Could you design a process that both would accept before knowing the result, and check it for manipulation? Thanks!
      Our A/B test shows a lift that vanishes in the holdout. Reason through every explanation and how to tell them apart
      Reorganize 600 people from functions to products without losing a release; risks, order, measures`,
  },
  {
    // Security, machine learning, statistics.
    light: `what is a firewall
      what does (GPU|LLM|VPN|AI) stand for
      what is overfitting in one sentence
      list three machine learning libraries
      is a longer password better
      define p-value simply
      My dad got a new phone for his seventieth birthday and now he wants to know what the little key symbol at the top means. It is the VPN, right?
      what is the mean of 2, 4 and 9
      name a type of neural network
      write a hello world in pytorch
      how do I take a screenshot on a mac
      which is older, linux or windows`,
    middle: `Explain cross-validation with a small example in scikit-learn
      Train a classifier on the iris data and report accuracy
      Checklist to secure a small office network
      When should I use a median instead of a mean`,
    strong: `Derive the gradient of (attention|a variational bound|a diffusion loss) and give a numerically stable implementation
      Our model is accurate in validation and useless in production. Find leakage, shift or feedback; plan the tests
      Design a protocol so that two hospitals learn a joint model without showing data, with its threat model
      Identify the causal effect with a weak instrument and partial compliance; bound what cannot be identified
      Train a 7B model on eight GPUs: memory budget, parallelism, checkpointing, what to drop first
      Find the flaw in this authentication scheme and a fix that stays compatible with deployed clients
      Build an anomaly detector for rare fraud with delayed labels and adversaries that adapt
      Sample size for a cluster trial with unequal clusters and dropout, and what if the correlation is twice as large
      Hello! Many thanks for looking at this: loss explodes at step 40,000 on one machine of sixteen, never the same one. What would you check, in which order, and why that order? Best wishes
      Show that this estimator is consistent, find its asymptotic variance and when the bootstrap fails`,
  },
]

/** More of the fields where plain words mislead most: long easy prompts and short demanding ones. */
const further: Field = {
  light: `Alphabetize these tools from our stack, one per line please: (Grafana, Prometheus, Consul, Vault, Nomad|Airflow, Spark, Flink, Hadoop|PyTorch, JAX, TensorFlow, Keras)
    In our wiki there is a page about eventual consistency, sharding and quorum reads, and its title is misspelled as "Distrbuted systems". How is the first word spelled correctly?
    My professor put a slide up with the words Lagrangian, Hamiltonian and symplectic on it. I only want to know how many l there are in Hamiltonian
    From this sentence give me only the verbs: The committee drafted a clause, the court rejected it and the parties settled
    I have a contract in front of me with many clauses about indemnity and arbitration, it is forty pages long and my lawyer is on holiday. What is the abbreviation for et cetera, etc or ect?
    We run a small clinic and the waiting room needs a sign that asks people to switch off their phones. One friendly sentence please, it will be printed in blue letters
    Change the date format of this list from 2024-03-01 to 1 March 2024: 2024-05-17, 2024-06-02
    Translate this menu line for our guests from Poland: soup of the day with bread
    Please make this one sentence sound a little warmer, I am sending it to a supplier we have worked with for years: We received the goods
    Turn this into a heading: how our company treats the data of its customers
    My essay about Kant and the categorical imperative is finished, I only need a title of at most six words for the cover page
    Remove the duplicate lines: apple, pear, apple, fig
    Which word is the subject in: The old judge of the district court slowly read the sentence aloud
    I cut my finger a bit while cooking, it has stopped bleeding already and does not hurt. Do plasters stick better on dry skin?
    We are choosing a colour for the front door, the house is white with a grey roof and two apple trees. Give me three colours that go with it
    Convert these meeting notes to bullet points: Anna does the slides, Bob calls the printer, Cem books the room
    add the currency sign to each number: 12, 40, 99
    write a short mail to my (teacher|trainer|dentist) that I come ten minutes late
    what is the correct greeting in a letter to a judge
    how do I say "see you tomorrow" to a colleague in Swedish
    add a line to the crontab that runs backup.sh every night at 2
    command to (list files by size|show disk space|see running processes|follow a log file)
    what does exit code 0 mean
    undo the last git commit
    For my company's holiday party I am making name cards. We have 24 people from seven departments, half of them vegetarian. What font looks festive?
    Tell me in one line what a balance sheet is, our intern asked during the audit and nobody had the patience
    the boss wants the revenue of 1200, 1500 and 900 added up
    I just started a keto diet with my husband and we track everything in an app now. How many grams are in an ounce?
    My class of third graders is doing a play about the solar system and little Mia is Saturn. Give me one fun fact about Saturn she could say aloud
    is it spelled judgement or judgment in american english
    which comes first in a sonata, the exposition or the development
    a polite closing line for a letter to the tax office`,
  middle: `Rewrite this paragraph at a reading age of twelve, keep all facts
    Write a bash script that backs up a folder, keeps the last seven copies and mails on failure
    Explain what happens when I type a url and press enter
    Draft terms for lending my camera to a friend of a friend
    Plan a three-course dinner for eight with a timetable
    Explain how vaccines train the immune system, for a blog of 500 words`,
  strong: `Our (staging|production) cluster loses one message in a million and only on Sundays. Nobody touched it. Why?
    Every deploy takes the site down for nine seconds. Get it to zero without new machines
    Write the runbook and the architecture for failing over a payment system while half of the operators are asleep
    Two engineers say the cache is right and the database is wrong. Settle it
    Make our builds reproducible across three operating systems, signed, offline
    Roll back a migration that already dropped a column in one of five regions
    Which of these three proofs is wrong, and where exactly?
    Can the tenant withhold rent here? The lease is silent, the statute changed mid-term and the notice was sent by text
    Rewrite our terms so that they hold in Texas, France and Japan at once
    The will contradicts the trust. Who inherits?
    Two statutes, one says must and one says may. Build the best reading for the accused
    Advise the board: settle or go to trial, given a hostile expert, a late document and a judge who dislikes delay
    Translate this lullaby so that it can be sung to the same tune, rhymes and images kept
    Render this legal opinion into English so that an English court would understand each concept that it lacks
    Edit this eulogy written by three siblings who disagree, so that each hears his own mother in it
    Translate wordplay, dialect and an insult that is also a blessing; explain the choices
    Cut this thesis chapter by 60 % and keep every step of the argument
    Plan a funeral, a visa and a move within nine days across two countries, with who does what and what can slip
    Divide an inheritance of a farm, a flat and a debt among four siblings so that none envies another, and show that it is so
    Six kids, five activities, two cars, one job with shifts: make the week work and tell me what breaks first
    Find the cheapest way to visit all twelve clients before Friday, given trains, hotels and two who only see us mornings
    Turn these 300 angry reviews into three decisions and the evidence against each
    Launch in four countries with one budget; allocate it under uncertainty and say when to pull out
    Why do our best customers leave after month seven? Tests, not guesses
    Rescue a novel whose twist every reader guesses by page fifty
    One scene, two readings, both consistent to the last word
    A poem in which each line is an anagram of the first
    The patient improves on the drug and dies of the cure. Reconstruct what went wrong
    Which of nine medicines caused this? Order the evidence
    The detector sees the particle twice. Artifact or discovery? Devise the test
    Scale this reaction from flask to ton without a runaway
    Reason about whether this market fails, and what a tax would really do
    Who actually pays the tariff? Model it, then doubt it
    Show how the regime survived a war that it lost
    If persons are bundles of perceptions, who is it that suffers? Argue to a conclusion
    Audit this model for bias when the sensitive attribute was never recorded`,
}

/** Other languages: some of each kind. */
const foreign: Field = {
  light: `schreibe ein kurzes gedicht über katzen
    nenne drei obstsorten
    was ist die hauptstadt von spanien
    übersetze "guten morgen" ins englische
    Hallo! Ich sitze gerade mit meiner Oma beim Kaffee und wir rätseln, wie viele Beine eine Spinne hat. Kannst du uns kurz helfen? Danke dir!
    wie lese ich eine csv-datei in python
    korrigiere die rechtschreibung: ich habe gesterrn gearbeitet
    wofür steht die abkürzung API
    écris un poème sur la mer
    donne-moi trois prénoms de chat
    corrige cette phrase : je suis aller au marché
    quelle est la capitale de l'italie
    Bonjour, j'espère que tu vas bien ! Ma voisine fête ses soixante ans demain et je voudrais lui écrire une petite phrase gentille sur une carte. Tu as une idée ? Merci beaucoup !
    comment dit-on merci en allemand
    escribe un poema sobre el otoño
    dime tres animales del mar
    traduce "hello" al español
    qué significa la sigla IVA
    Hola, buenos días. Estoy ayudando a mi hijo con los deberes y necesitamos saber cuántos minutos tiene una hora y media. ¿Nos lo dices? ¡Muchas gracias!
    cómo imprimo una lista en python
    escreva uma frase sobre o verão
    liste cinco cores
    qual é a capital de portugal
    Oi! Estou montando um cartão para a minha mãe e preciso de uma rima simples com flor. Pode me ajudar? Obrigada!
    scrivi una filastrocca sul gatto
    dimmi tre colori
    come si dice grazie in inglese
    schrijf een kort versje over de regen
    noem drie dieren
    napisz krótki wiersz o kocie
    wymień trzy owoce
    напиши короткий стих про осень
    назови три фрукта
    переведи на английский: доброе утро
    Привет! Мы с дочкой делаем уроки и забыли, сколько планет в солнечной системе. Подскажи, пожалуйста, коротко. Спасибо большое!
    напиши вірш про кота
    назви три кольори
    kediler hakkında kısa bir şiir yaz
    üç meyve say
    türkiye'nin başkenti neresi
    اكتب قصيدة قصيرة عن البحر
    اذكر ثلاث فواكه
    ما عاصمة مصر
    כתוב שיר קצר על חתולים
    מה בירת צרפת
    یک شعر کوتاه درباره باران بنویس
    سه میوه نام ببر
    बिल्ली पर एक छोटी कविता लिखो
    तीन फलों के नाम बताओ
    भारत की राजधानी क्या है
    বিড়াল নিয়ে একটি ছোট কবিতা লেখো
    তিনটি ফলের নাম বলো
    写一首关于猫的短诗
    列出三种水果
    把“早上好”翻译成英文
    中国的首都是哪里
    你好！我正在陪女儿做作业，她想知道一年有多少个星期。麻烦你简单告诉我们一下，谢谢！
    猫についての短い詩を書いて
    果物を三つ挙げて
    「おはよう」を英語に訳して
    こんにちは！今日は母の誕生日で、カードに書く短いお祝いの言葉を一つ考えてほしいです。よろしくお願いします。
    고양이에 대한 짧은 시를 써줘
    과일 세 가지를 말해줘
    프랑스의 수도는 어디야
    viết một bài thơ ngắn về mèo
    kể tên ba loại trái cây
    thủ đô của nhật bản là gì
    เขียนกลอนสั้นๆ เกี่ยวกับแมว
    บอกชื่อผลไม้สามอย่าง
    tulis puisi pendek tentang hujan
    sebutkan tiga buah
    andika shairi fupi kuhusu paka
    taja matunda matatu`,
  middle: `Schreibe einen Aufsatz von zwei Seiten über die Ursachen der Inflation
    Erstelle einen Trainingsplan für einen Halbmarathon in zwölf Wochen
    Rédige une lettre de motivation pour un poste de comptable
    Planifica un viaje de cinco días a Roma con niños
    Compare energia solar e eólica para uma casa
    Составь план питания на неделю для семьи
    写一份介绍新产品的新闻稿，五百字左右
    初心者向けのマラソン練習計画を十二週間で立てて`,
  strong: `Entwirf eine mandantenfähige Architektur für ein Abrechnungssystem mit strenger Isolation und ausfallsicherer Datenhaltung
    Beweise, dass jede endliche Gruppe von Primzahlordnung zyklisch ist
    Unser Dienst verklemmt sich einmal pro Woche unter Last. Finde die Ursache anhand dieser Thread-Dumps und begründe die Korrektur
    Prüfe, ob diese Wettbewerbsklausel wirksam ist, und argumentiere für beide Seiten
    Hallo, ich hoffe, es geht Ihnen gut! Könnten Sie bitte den Dienstplan für elf Pflegekräfte so entwerfen, dass Ruhezeiten, Qualifikationen und Fairness eingehalten werden, und zeigen, was nicht erfüllbar ist? Vielen Dank!
    Leite die Feldgleichungen her und diskutiere die Annahmen
    Conçois un système distribué de files de messages qui survit à la perte d'une région, avec une analyse des pannes
    Démontre que l'image continue d'un compact est compacte, puis généralise
    Évalue dans quelle mesure le plan Marshall explique la reprise, contre la meilleure explication rivale
    Rédige une clause de responsabilité pour une acquisition transfrontalière et justifie chaque compromis
    Bonsoir, merci d'avance ! Pourriez-vous analyser pourquoi notre requête met quarante minutes malgré les index, réécrire la requête et prouver que le résultat reste le même ?
    Diseña una arquitectura tolerante a fallos para pagos con consistencia estricta y explica los compromisos
    Demuestra que hay infinitos primos congruentes con 3 módulo 4
    Diagnóstico diferencial: fiebre, soplo nuevo e insuficiencia renal; justifica los siguientes pasos
    Analiza críticamente el ensayo clínico: sesgos, riesgos competitivos y potencia
    Projete um esquema de dados bitemporal para apólices, com auditoria, e discuta os casos extremos
    Prove que a função é uniformemente contínua e dê um contraexemplo sem a hipótese
    Otimize o roteiro de trinta entregas com janelas de tempo e justifique o método
    Progetta un sistema di prenotazione concorrente senza perdite e dimostra che non va in stallo
    Ricava l'equazione di Boltzmann e discuti quando cade l'ipotesi
    Ontwerp een fouttolerante betaaldienst met meerdere regio's en bewijs dat er nooit twee leiders zijn
    Zaprojektuj rozproszony magazyn danych odporny na awarie i uzasadnij kompromisy
    Udowodnij, że ciąg jest zbieżny, i uogólnij wynik
    Спроектируй распределённую систему биллинга с изоляцией клиентов и отказоустойчивостью
    Докажи, что непрерывный образ компакта компактен, и обобщи
    Здравствуйте! Надеюсь, у вас всё хорошо. Наш сервис раз в неделю зависает под нагрузкой; найдите причину, обоснуйте исправление и оцените риски. Большое спасибо!
    Спроєктуй стійку до відмов систему платежів і обґрунтуй компроміси
    Доведи, що послідовність збігається
    Çok kiracılı bir faturalama sistemi tasarla, hata toleransını ve ödünleşimleri gerekçelendir
    Bu dizinin yakınsak olduğunu kanıtla ve genelleştir
    صمم نظام مدفوعات موزعًا يتحمل الأعطال مع تحليل المخاطر والمقايضات
    أثبت أن كل زمرة منتهية رتبتها عدد أولي دورية
    تכנן מערכת מבוזרת עמידה בפני תקלות ונמק את הפשרות
    הוכח שהסדרה מתכנסת והכלל את התוצאה
    یک سامانه توزیع‌شده مقاوم در برابر خطا طراحی کن و مصالحه‌ها را توجیه کن
    ثابت کن که این دنباله همگراست
    एक दोष-सहिष्णु वितरित भुगतान प्रणाली डिज़ाइन करो और हर समझौते का औचित्य दो
    सिद्ध करो कि अभाज्य संख्याएँ अनंत हैं और तर्क दो
    একটি ত্রুটি-সহনশীল বিতরণ করা পেমেন্ট সিস্টেম নকশা করো এবং যুক্তি দাও
    প্রমাণ করো যে মৌলিক সংখ্যা অসীম
    设计一个多租户计费系统，要求严格隔离、跨区域容灾，并论证每个取舍
    证明连续函数把紧集映成紧集，并推广到一般拓扑空间
    我们的服务每周在高负载下死锁一次，请根据线程转储分析根因并给出不影响吞吐量的修复方案
    你好，辛苦了！请帮忙为十一名护士排班：兼顾休息、资质和公平，并说明哪些约束无法同时满足。非常感谢！
    推导该估计量的渐近方差，并说明自助法何时失效
    障害に強い分散決済システムを設計し、トレードオフを論証して
    有限群の位数が素数なら巡回群であることを証明し、一般化して
    お世話になっております。お手数ですが、索引があるのに四十分かかるクエリの原因を分析し、結果が変わらないことを示しながら書き直していただけますか。よろしくお願いいたします。
    내결함성 분산 결제 시스템을 설계하고 절충점을 논증해줘
    연속함수가 콤팩트 집합을 콤팩트 집합으로 보냄을 증명하고 일반화해줘
    thiết kế hệ thống thanh toán phân tán chịu lỗi và biện luận từng đánh đổi
    chứng minh rằng dãy số hội tụ và tổng quát hóa kết quả
    ออกแบบระบบชำระเงินแบบกระจายที่ทนต่อความผิดพลาดและวิเคราะห์ข้อแลกเปลี่ยน
    พิสูจน์ว่าจำนวนเฉพาะมีอนันต์และให้เหตุผลทุกขั้นตอน
    rancang sistem pembayaran terdistribusi yang tahan gangguan dan jelaskan setiap kompromi
    buktikan bahwa barisan ini konvergen lalu perumum hasilnya
    buni mfumo wa malipo uliosambazwa unaostahimili hitilafu na utetee kila uamuzi
    thibitisha kwamba namba tasa hazina mwisho`,
}

/** Very short prompts: demanding ones, and easy ones in the words of the same fields. */
const terse: Readonly<Record<'light' | 'strong', string>> = {
  strong: `(Prove|Derive|Disprove) (Fubini's theorem|Stirling's formula|Burnside's lemma|the central limit theorem|Gauss's theorema egregium|the spectral theorem|Bell's inequality)
    Derive the (Black-Scholes equation|Dirac equation|Lorentz transformation|Kalman filter|Euler-Lagrange equations|Michaelis-Menten equation|optimal stopping rule)
    Construct a (counterexample|continuous function differentiable nowhere|non-measurable set)
    Solve the (Schrödinger equation for a finite well|Navier-Stokes equations between plates|wave equation on a disc)
    Compute the (homology of a torus|Galois group of x^5 - 2|partition function of the Ising chain)
    Implement (Raft|Paxos|a CRDT text editor|red-black deletion|garbage collection|a JIT|backpropagation from scratch|A* with consistency proofs|wait-free snapshots)
    Write a (compiler|kernel scheduler|SAT solver|SQL optimizer|memory allocator|raytracer|theorem prover|hypervisor)
    Lock-free (hash map|skip list|queue) with safe memory reclamation
    Debug this (race condition|heap corruption|deadlock|memory leak|kernel panic)
    Design (Twitter's timeline|a stock exchange|a payment ledger|WhatsApp at scale|a CDN|a feature store|Dropbox sync|multi-region failover)
    Zero-downtime (migration|resharding|cutover) of a (ledger|monolith|live database)
    Shard this (graph database|multi-tenant Postgres)
    Root-cause the (outage|latency spike|data loss|cascading failure)
    Threat-model our (wallet|login flow|build pipeline|voting app)
    Differential for (sudden confusion in an elder|syncope with chest pain|jaundice and itching|hypercalcemia|unexplained eosinophilia)
    Manage (septic shock in cirrhosis|anticoagulation in brain metastases|refractory status epilepticus|diabetic ketoacidosis with heart failure)
    Critique this (trial|meta-analysis|regression|proof|business model|constitution|experiment)
    Mechanism of (this rearrangement|prion spread|allosteric inhibition|long-term potentiation)
    Total synthesis of (taxol|strychnine|a prostaglandin)
    Hedge a (variance swap|callable bond portfolio|currency peg)
    Value a (distressed airline|pre-revenue biotech|royalty stream|toll road concession)
    Restructure a (sovereign default|family holding|insolvent retailer)
    Draft an (indemnity with carve-outs|arbitration clause for three states|appellate brief|earn-out)
    Is this (non-compete|search|seizure|patent claim|transfer) lawful? Argue both sides
    Reconcile (free will with determinism|relativism and human rights|Hume and Kant on causation)
    Refute the (ontological argument|trolley consensus|simulation argument)
    Defend (moral realism|panpsychism|epistocracy) against its best critic
    What if (the Ottomans had industrialized|Weimar had survived|the plague had spared Europe)? Trace consequences
    Why did (Rome fall|Athens lose|the League fail)? Weigh rival explanations
    Forecast the (collapse of the euro|next demographic shock|effects of a wealth tax)
    Sestina in strict iambic pentameter
    Write a (palindromic story|crown of sonnets|double acrostic with metre|novel opening in free indirect style|villanelle on exile)
    Translate (Rilke|Pushkin|Du Fu|Homer) keeping metre and rhyme
    Scan, translate and annotate this (ode|hymn|epigram)
    Schedule (nurses|exams|a tournament|flight crews) under (hard rules|rest rules|forty constraints)
    Optimal (route for 40 deliveries|seating under feuds|harvest rota|retirement withdrawal order)
    Go-to-market against a free incumbent
    Pricing strategy for a two-sided marketplace
    Turnaround plan for a failing (hospital|airline|magazine)
    Causal effect of (schooling on wages|ads on sales|prices on churn), identified
    Bayesian hierarchical model for sparse (clinics|counties|teams)
    Train a (transformer|diffusion model|policy) from scratch, distributed
    Bound the regret of this bandit
    Size a (heat exchanger|bridge girder|battery pack|flood dam) with safety margins
    Stabilize an inverted pendulum with delay
    Beweise den Satz von (Stokes|Cantor|Noether)
    Entwirf (einen Compiler|ein Konsensprotokoll|eine ausfallsichere Architektur)
    Leite die (Dirac-Gleichung|Maxwell-Gleichungen) her
    Démontre le théorème de (Stokes|Noether|Cantor)
    Conçois un (compilateur|protocole de consensus)
    Demuestra el teorema de (Stokes|Noether|Cantor)
    Diseña un (compilador|protocolo de consenso tolerante a fallos)
    Demonstre o teorema de (Stokes|Noether)
    Projete um (compilador|protocolo de consenso)
    Dimostra il teorema di (Stokes|Noether)
    Докажи теорему (Стокса|Нётер|Кантора)
    Спроектируй (компилятор|протокол консенсуса)
    证明(斯托克斯|诺特|康托尔)定理
    设计一个(编译器|共识协议|分布式事务系统)
    推导(狄拉克方程|麦克斯韦方程组)
    (ストークス|ネーター|カントール)の定理を証明して
    (コンパイラ|合意プロトコル|分散データベース)を設計して
    (스토크스|뇌터) 정리를 증명해줘`,
  light: `what is (a matrix|Raft|a compiler|a sonnet|arbitrage|a kernel|a hedge|a theorem|a covenant|jaundice|a mutex)
    define (entropy|liability|syncope|metre|sharding|heuristic|amortization|metaphor|isotope|statute)
    who (invented the telephone|wrote Hamlet|discovered penicillin|proposed relativity|founded Rome|painted Guernica)
    how do you (spell rhythm|pronounce cache|say hello in Japanese|boil rice|open a zip file|exit vim|undo a commit)
    (five|three|ten) (synonyms for big|rhymes for day|islands in Greece|dog breeds|blue flowers|programming languages|famous proofs|card games)
    plural of (theorem|appendix|matrix|crisis)
    convert (5 miles to km|2 pounds to grams|0.25 to a fraction|3 pm UTC to Berlin time|1 GB to MB)
    (lowercase|capitalize|reverse|alphabetize) (this|these words: queue stack heap|the title)
    translate (design|proof|deadlock|mortgage|good night) to (German|Polish|Italian)
    print (hello|the even numbers|today's date) in (c|bash|python|go)
    (read a file|parse csv|make a GET request|sort an array) in (node|python|java)
    fix the typo: (algoritm|theorm|arcitecture|diagnosys)
    short poem about (rain|bees|my bike)
    joke about (lawyers|programmers|physicists|philosophers)
    (title|name|caption|emoji) for my (boat|blog|cat|team)
    capital of (Chile|Kenya|Norway)
    when was (Bach born|Kant born|the moon landing|Python released)
    is (7 prime|helium a metal|Pluto a planet|SQL case sensitive|a tomato a fruit)
    shorten this (email|sentence)
    sum of (1, 2 and 9|the numbers 4 8 15)
    was ist (ein Compiler|Entropie|eine Matrix)
    nenne (fünf Vögel|drei Beweise|zwei Flüsse)
    qu'est-ce qu'(un compilateur|une matrice)
    qué es (un compilador|la entropía)
    o que é (um compilador|uma matriz)
    что такое (компилятор|энтропия|матрица)
    什么是(编译器|熵|矩阵)
    (コンパイラ|エントロピー)とは
    (컴파일러|엔트로피)가 뭐야`,
}

/** Irrelevant context around a request, which must not change its difficulty. */
const contexts: readonly string[] = [
  'We moved to a new flat last month and the boxes are still everywhere.',
  'My colleague Sam sat next to me at lunch and we got into a discussion about this.',
  'I am on the train with a weak connection, so forgive any typos.',
  'It has been raining all day here and I finally have time for this.',
  'Our team has a small competition running and the loser buys coffee.',
  'I have asked two people already and got two different answers.',
  'This is for the newsletter of our sports club, which about sixty people read.',
  'I am not an expert at all, just curious since I saw a documentary about it last night.',
  'My daughter, who is nine, keeps asking me and I never know what to say.',
  'There is a poster about it on the wall of my office that I walk past every morning.',
  'I wrote it on a sticky note weeks ago and only now come round to it.',
  'A customer called about it this morning and I promised to get back to her.',
  'For background: we are a shop of five people in a small town by the river.',
  'My flight leaves in an hour and I would like to settle this before boarding.',
  'I used to know this at university, but that was twenty years ago.',
  'Everybody on the project seems to know it and I do not want to look silly.',
]
const openings: readonly string[] = [
  '',
  '',
  'Hi there!',
  'Good morning,',
  'Hello, hope you are well.',
  'Hey,',
  'Quick one:',
  'Hi, sorry to bother you.',
]
const closings: readonly string[] = [
  '',
  '',
  '',
  'Thanks so much!',
  'Many thanks in advance.',
  'That would help me a lot.',
  'No rush.',
  'Thank you, have a lovely day!',
]

/** Returns the request with an opening, irrelevant context and thanks. */
function inPassing(text: string): string {
  const random = seededRandom(hashOf(text))
  const one = (of: readonly string[]) => of[Math.floor(random() * of.length)] ?? ''
  const told = [one(contexts), random() < 0.5 ? one(contexts) : '']
  return [one(openings), ...(random() < 0.6 ? [...told, text] : [text, ...told]), one(closings)]
    .filter(part => part !== '')
    .join(' ')
}

/** A prompt with the capability level that it needs. */
type EffortExample = { readonly text: string; readonly level: Level; readonly field: number }

/** Returns all examples, `each` of every line with several, with and without context. Deterministic. */
export function effortExamples(each: number): readonly EffortExample[] {
  const lists = [...fields, further, foreign, { ...terse, middle: '' }]
  const plain = lists.flatMap((field, index) =>
    levels.flatMap(level =>
      [...new Set(filled(field[level], {}, each))]
        .filter(text => text !== '')
        .map(text => ({ text, level, field: index })),
    ),
  )
  const english = plain.filter(({ text, field }) => field !== fields.length + 1 && !foreignLetters.test(text))
  return [...plain, ...english.map(example => ({ ...example, text: inPassing(example.text) }))]
}

const foreignLetters = /[\u0370-\uffff]/
